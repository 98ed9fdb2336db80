"""Checks a corpus before a build: what it contains, what is wrong with it, what it becomes."""

import itertools
import logging
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from data_pipeline.building.folder import why_no_records
from data_pipeline.building.shards import block_instances
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError
from data_pipeline.instances.masking import MaskingVocabulary
from data_pipeline.instances.segments import DocumentBlock
from data_pipeline.progress import CountedProgress
from data_pipeline.randomness import key_of, permute, subkeys
from data_pipeline.records.examples import encode_instances
from data_pipeline.reports.word_runs import NearDuplicate, WordRuns
from data_pipeline.text import storage
from data_pipeline.text.corpus import Document, corpus_ranges, read_corpus, read_range
from data_pipeline.text.corpus_formats import check_format, detect_format, has_sentence_lines
from data_pipeline.text.languages import detect_language
from data_pipeline.text.letters import (
    language_fault,
    scripts_of,
    words_of,
)
from data_pipeline.text.sample import sample_documents
from data_pipeline.text.sentences import check_splitter, split_sentences
from data_pipeline.text.signs import SignCounter
from data_pipeline.text.text_files import TextRange, find_files, split_file
from data_pipeline.tokenizers.tokenization import Tokenizer

logger = logging.getLogger(__name__)

_DEFAULTS = PretrainingDataConfig()
_QUANTILES = {"5%": 5, "median": 50, "95%": 95, "max": 100}
#: Unknown characters in a report.
_UNKNOWN_SHOWN = 10
#: Tokens of the sample from which the records are estimated.
_ESTIMATED_TOKENS = 1 << 20
#: Bytes of a record in its file and in the index besides its own.
_BYTES_AROUND = 16 + 8
#: Before a build: files whose lines are looked at, characters of the sample, and letters below
#: which it says nothing about the language.
_FILES_READ, _SAMPLE_CHARS, _TOO_FEW_LETTERS = 16, 400_000, 500
_MOST_PADDING = 0.5
#: A larger fraction of unknown tokens causes a warning, as does text that records lack.
_MOST_UNKNOWN = 0.03


class Problem(NamedTuple):
    """A reason why a build would reject the corpus, and the path of the file ("" for all files)."""

    file: str
    reason: str


class Estimate(NamedTuple):
    """The records that a build is expected to make of a corpus."""

    records: int  # of all copies
    bytes: int  # of record files and indexes
    padding: float  # fraction of the positions that contain no token
    kept_text: float  # fraction of the tokens of the corpus that the records contain
    median_tokens: int  # of a record, with [CLS] and [SEP]


class CorpusReport(NamedTuple):
    """The result of `check_corpus`. Counts refer to the text read, the estimate to all text."""

    problems: list[Problem]  # each file once, with its first fault
    files: int
    bytes: int
    share_read: float  # 1, or the fraction of a sample
    formats: dict[str, int]  # format -> number of files
    files_without_text: list[str]
    #: `documents`, `empty_documents` (no tokens), `one_sentence_documents`, `paragraphs`,
    #: `sentences`, `words`, `characters`, and with a tokenizer `pieces` (all tokens),
    #: `unknown_pieces` and `long_sentences` (more tokens than fit into a record).
    counts: Counter
    #: Fraction of the documents that are equal to an earlier one, or differ in case, numbers and
    #: punctuation alone.
    repeated_documents: float
    repeated_text: float  # fraction of the text in such documents
    near_duplicates: list[NearDuplicate]  # the largest share first
    held_out_share: float | None  # fraction of the runs of 8 words of held-out text in the corpus
    sentence_files: list[str]  # read as prose, but each line seems to be a sentence
    signs: list[tuple[bool, str, str]]  # of paragraphs, such as markup, see `SignCounter`
    sentence_lengths: dict[str, int]  # quantiles, in tokens, or characters without a tokenizer
    unknown_characters: list[tuple[str, int]]  # the most frequent ones not in the vocabulary
    scripts: dict[str, float]  # fraction of the letters by script, the largest first
    estimate: Estimate | None  # None without a tokenizer


def check_corpus(
    sources: list[str | Path],
    tokenizer: Tokenizer | None = None,
    config: PretrainingDataConfig = _DEFAULTS,
    corpus_format: str = "auto",
    sample_mb: float = 50,
    heldout: list[str | Path] | None = None,
) -> CorpusReport:
    """Checks a corpus, or a random sample of a large one; writes nothing.

    Unlike a build it continues after a file that cannot be read; documents before the fault count.
    A sample consists of whole ranges (`corpus_ranges`), selected by the seed. Faults and
    repetitions outside of it are not found.

    Args:
        sources: list of str or Path, as in `read_corpus`.
        tokenizer: Tokenizer or None. Without one tokens and records are not reported.
        config: PretrainingDataConfig.
        corpus_format: str. As in `read_corpus`.
        sample_mb: float. Megabytes to read of a larger corpus, rounded up to a whole range.
        heldout: list of str or Path, or None. Text that must not be part of the corpus; its
            near-duplicates are reported.

    Returns:
        CorpusReport.

    Raises:
        InputError: If a source is missing or a setting is wrong.
    """
    if not sample_mb > 0:
        raise InputError(f"`sample_mb` must be greater than 0. Received: {sample_mb}.")
    check_format(corpus_format)
    check_splitter(config.splitter, config.language)
    files, refused = find_files(sources), {}
    formats: Counter[str] = Counter()
    ranges: list[TextRange] = []
    num_bytes, sentence_files = 0, []
    for file in files:
        try:
            num_bytes += storage.size_of(file.path)
            format = detect_format(file.path) if corpus_format == "auto" else corpus_format
            ranges += split_file(file, format)
            formats[format] += 1
            if corpus_format == "auto" and format == "prose" and has_sentence_lines(file.path):
                sentence_files.append(str(file.path))
        except InputError as error:
            refused[str(file.path)] = str(error)
    ranges, share = _sampled(ranges, sample_mb * 1e6, config.seed)
    seen, without_text = _Statistics(tokenizer, config), []
    size = sum(part.num_bytes for part in ranges)
    progress = CountedProgress(logger, "checking", size / 1e6, "MB")
    for path, parts in itertools.groupby(ranges, key=lambda part: str(part.path)):
        before = seen.counts["documents"]
        try:
            for part in parts:
                for document in read_range(part):
                    seen.add(document)
                progress.add(part.num_bytes / 1e6)
        except InputError as error:
            refused[path] = str(error)
        else:
            if seen.counts["documents"] == before:
                without_text.append(path)
    for document in read_corpus(heldout, corpus_format) if heldout else ():
        seen.runs.add(document, held_out=True)
    estimate = seen.estimate(seen.counts["pieces"] / share) if tokenizer else None
    problems = [Problem(path, reason) for path, reason in sorted(refused.items())]
    if share == 1 and not problems:
        counts = Counter(seen.counts, instances=estimate.records if estimate else 1)
        if not counts["sentences"]:
            counts["documents"] = 0  # a build does not count documents without tokens
        if reason := why_no_records(counts, config):
            problems.append(Problem("", reason))
    characters = max(seen.counts["characters"], 1)
    return CorpusReport(
        problems=problems,
        files=len(files),
        bytes=num_bytes,
        share_read=share,
        formats=dict(formats.most_common()),
        files_without_text=without_text,
        counts=seen.counts,
        repeated_documents=seen.repeated["documents"] / max(seen.counts["documents"], 1),
        repeated_text=seen.repeated["document text"] / characters,
        near_duplicates=seen.runs.near_duplicates(),
        held_out_share=seen.runs.held_out_share(),
        sentence_files=sentence_files,
        signs=list(seen.signs.findings("paragraphs")),
        sentence_lengths=_quantiles(seen.sentence_lengths),
        unknown_characters=tokenizer.unknown_characters(seen.characters, _UNKNOWN_SHOWN)
        if tokenizer and seen.counts["unknown_pieces"]
        else [],
        scripts=scripts_of(seen.characters),
        estimate=estimate,
    )


def check_before_build(
    sources: str | Path | list,
    tokenizer: Tokenizer,
    config: PretrainingDataConfig,
    corpus_format: str = "auto",
) -> None:
    """Checks settings against a sample of about 0.4 MB of a corpus, and logs warnings.

    There are warnings if most positions of the records would be padding, if the tokenizer does not
    know the text, if it reads as another language, and for the `SIGNS` of what is not text.

    Raises:
        InputError: If the splitter depends on a language that is not written in the script of the
            corpus, or as `read_corpus`.
    """
    check_splitter(config.splitter, config.language)
    if corpus_format == "auto":
        for file in find_files(sources)[:_FILES_READ]:
            if detect_format(file.path) == "prose" and has_sentence_lines(file.path):
                logger.warning(
                    "`%s` seems to have one sentence per line and blank lines between documents, "
                    "as the corpus of BERT and ALBERT has. It is read as prose, as one document: "
                    "use `corpus_format=sentences`.",
                    file.path,
                )
                break
    seen, texts = _Statistics(tokenizer, config), []
    for document in sample_documents(corpus_ranges(sources, corpus_format), _SAMPLE_CHARS):
        seen.add(document)
        texts.append(document.text)
    is_split = config.splitter == "sentencex" and corpus_format != "sentences"
    if is_split and sum(map(str.isalpha, seen.characters.elements())) >= _TOO_FEW_LETTERS:
        detected, scripts = detect_language("\n".join(texts)), scripts_of(seen.characters)
        is_other, reason = language_fault(scripts, detected, config.language)
        if is_other:
            raise InputError(
                "`language` must be the language of the corpus, because sentences are split by its "
                f"rules. {reason}, or `splitter=line` if each paragraph is one sentence. "
                f"Received: language={config.language!r}."
            )
        if reason:
            logger.warning(
                "The corpus does not seem to be in the language `%s`, by whose rules sentences are "
                "split (`language`): %s.",
                config.language,
                reason,
            )
    for is_good, name, text in seen.signs.findings("paragraphs"):
        if not is_good:
            logger.warning("%s: %s.", name, text)
    unknown = seen.counts["unknown_pieces"] / max(1, seen.counts["pieces"])
    if unknown > _MOST_UNKNOWN:
        logger.warning(
            "The tokenizer does not know %.1f %% of the tokens of the corpus, from which a model "
            "learns nothing. %s.",
            100 * unknown,
            tokenizer.remedy(tokenizer.unknown_characters(seen.characters, _UNKNOWN_SHOWN)),
        )
    estimate = seen.estimate(seen.counts["pieces"])
    if estimate.padding > _MOST_PADDING:
        length = max(8, 1 << (2 * estimate.median_tokens - 1).bit_length())
        logger.warning(
            "About %.0f %% of all positions will be padding: half of the records have at most %d "
            "tokens, and `max_seq_length` is %d. Records with `max_seq_length=%d` take less "
            "space and train faster.",
            100 * estimate.padding,
            estimate.median_tokens,
            config.max_seq_length,
            min(length, config.max_seq_length // 2),
        )


class _Statistics:
    """Counts of the documents that are added, and a sample of them to estimate the records from."""

    def __init__(self, tokenizer, config):
        self._tokenizer, self._config = tokenizer, config
        self.counts, self.characters = Counter(), Counter()
        self.sentence_lengths, self.repeated = Counter(), Counter()
        self._sample, self._sampled_tokens = [], 0
        self.signs, self.runs = SignCounter(), WordRuns()

    def add(self, document: Document) -> None:
        text = document.text
        sentences = split_sentences(document, self._config.splitter, self._config.language)
        if self._tokenizer is None:
            lengths = np.array([len(sentence) for sentence in sentences], np.int64)
        else:
            ids, lengths = self._tokenizer.encode_sentences(sentences)
            lengths = lengths[lengths > 0]
            if len(ids) and self._sampled_tokens < _ESTIMATED_TOKENS:
                self._sample.append((ids, lengths))
                self._sampled_tokens += len(ids)
            self.counts.update(
                pieces=len(ids),
                unknown_pieces=int((ids == self._tokenizer.unk_id).sum()),
                long_sentences=int((lengths > self._config.max_num_tokens).sum()),
            )
        self.counts.update(
            documents=1,
            empty_documents=int(len(lengths) == 0),
            one_sentence_documents=len(lengths) == 1,
            paragraphs=len(document.paragraphs),
            sentences=len(lengths),
            words=len(words_of(text)),
            characters=len(text),
        )
        self.sentence_lengths.update(lengths.tolist())
        self.characters.update(text.replace("\n", ""))
        if not self.runs.add(document):
            self.repeated.update({"documents": 1, "document text": len(text)})
        for paragraph in document.paragraphs:
            self.signs.add(paragraph, document.name)

    def estimate(self, num_tokens: float) -> Estimate:
        """Estimates the build of a corpus with a number of tokens from one copy of the sample.

        The documents have other keys than in a build, so numbers agree on average.
        """
        if not self._sample:
            return Estimate(0, 0, 0.0, 1.0, 0)
        config = self._config
        counts: Counter[str] = Counter()
        ids, lengths = zip(*self._sample, strict=True)
        keys = subkeys(key_of("corpus check", config.seed), np.arange(len(ids)))
        sizes = [len(document) for document in lengths]
        block = DocumentBlock.of(np.concatenate(ids), np.concatenate(lengths), sizes, keys)
        vocabulary = MaskingVocabulary.of(self._tokenizer, config.masking.word_start)
        real, num_bytes = [np.zeros(0, int)], 0.0
        for instances in block_instances(block, config.replace(copies=1), vocabulary, counts):
            real.append(instances["input_mask"].sum(axis=1))
            num_bytes = num_bytes or float(np.mean(list(map(len, encode_instances(instances)))))
        if not counts["instances"]:
            return Estimate(0, 0, 0.0, 0.0, 0)
        records = round(counts["instances"] * config.copies * num_tokens / self._sampled_tokens)
        return Estimate(
            records,
            round(records * (num_bytes + _BYTES_AROUND)),
            padding=1 - counts["real_positions"] / counts["positions"],
            kept_text=min(1.0, counts["kept_pieces"] / self._sampled_tokens),
            median_tokens=int(np.median(np.concatenate(real))),
        )


def _quantiles(lengths):
    """Returns the quantiles of lengths that are counted; all 0 without any."""
    values, shares = list(lengths.elements()) or [0], list(_QUANTILES.values())
    found = np.percentile(values, shares, method="inverted_cdf")
    return dict(zip(_QUANTILES, map(int, found), strict=True))


def _sampled(ranges, max_bytes, seed):
    """Selects ranges; returns them in their order, and their fraction of all bytes."""
    sizes = np.array([part.num_bytes for part in ranges], np.int64)
    if sizes.sum() <= max_bytes:
        return ranges, 1.0
    order = permute(np.arange(len(ranges)), len(ranges), key_of("corpus check", seed))
    count = np.searchsorted(sizes[order].cumsum(), max_bytes) + 1
    chosen = np.sort(order[:count])
    return [ranges[index] for index in chosen], float(sizes[chosen].sum() / sizes.sum())
