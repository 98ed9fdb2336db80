"""Where the time of a build goes: its own functions, each under a clock while the build runs."""

import collections.abc
import contextlib
import functools
import importlib
import time

#: Time that is in none of the functions below.
REST = "everything else"

#: Stage -> functions, as "module:name". What a function calls that is listed too counts there.
STAGES = {
    "reading": (
        "data_pipeline.building.build:corpus_ranges",
        "data_pipeline.building.encoding:range_digest",
        "data_pipeline.building.encoding:read_range",
    ),
    "sentences": ("data_pipeline.building.encoding:split_sentences",),
    "encoding": ("data_pipeline.tokenizers.tokenization:Tokenizer.encode_sentences",),
    "spilling and ordering": (
        "data_pipeline.building.encoding:encode_document",
        "data_pipeline.building.encoding:write_part",
        "data_pipeline.building.build:order_documents",
        "data_pipeline.building.shards:documents_digest",
        "data_pipeline.building.shards:gather",
    ),
    "cutting and packing": (
        "data_pipeline.building.shards:block_records",
        "data_pipeline.building.shards:add_separators",
        "data_pipeline.building.shards:split_into_pairs",
        "data_pipeline.building.shards:truncate_pairs",
        "data_pipeline.building.shards:pack",
    ),
    "masking": (
        "data_pipeline.building.shards:mask_ngrams",
        "data_pipeline.building.shards:word_boundaries",
    ),
    "serialising": ("data_pipeline.building.shards:encode_instances",),
    "writing": ("data_pipeline.building.build:build_shard",),
}


class StageClock:
    """Shares the time between calls out to stages: each moment belongs to the innermost one.

    Attributes:
        seconds: dict of str to float. Per stage; together all the time between `start` and `stop`.
    """

    def __init__(self):
        self.seconds = dict.fromkeys((*STAGES, REST), 0.0)
        self._open = [REST]
        self._last = None

    def start(self):
        """Begins; until a stage is entered all time is `REST`."""
        self._last = time.perf_counter()

    def stop(self):
        """Ends."""
        self._charge()

    def timed(self, function, stage):
        """Returns the function with its calls charged to a stage; iterators item by item."""

        @functools.wraps(function)
        def call(*args, **kwargs):
            with self._in(stage):
                result = function(*args, **kwargs)
            return self._items(result, stage) if _is_iterator(result) else result

        return call

    def _items(self, iterator, stage):
        while True:
            with self._in(stage):
                try:
                    item = next(iterator)
                except StopIteration:
                    return
            yield item

    @contextlib.contextmanager
    def _in(self, stage):
        self._charge()
        self._open.append(stage)
        try:
            yield
        finally:
            self._charge()
            self._open.pop()

    def _charge(self):
        now = time.perf_counter()
        self.seconds[self._open[-1]] += now - self._last
        self._last = now


@contextlib.contextmanager
def stage_clock():
    """Puts the functions of `STAGES` under a clock, in this process and for this block.

    Yields:
        StageClock.
    """
    clock, kept = StageClock(), []
    for stage, names in STAGES.items():
        for name in names:
            place, attribute = _find(name)
            function = getattr(place, attribute)
            kept.append((place, attribute, function))
            setattr(place, attribute, clock.timed(function, stage))
    try:
        clock.start()
        yield clock
        clock.stop()
    finally:
        for place, attribute, function in kept:
            setattr(place, attribute, function)


def _find(name):
    module, _, path = name.partition(":")
    *owners, attribute = path.split(".")
    return functools.reduce(getattr, owners, importlib.import_module(module)), attribute


def _is_iterator(value):
    return isinstance(value, collections.abc.Iterator)
