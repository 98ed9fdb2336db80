"""Questions whose answers are spans of a passage, as in SQuAD."""

import dataclasses

from albert_keras.tasks.kind import TaskKind

SPANS = TaskKind(
    name="spans",
    official_tasks=("squad1",),
    task_class="albert_keras.tasks.spans.task:SpanTask",
    model_class="albert_keras.tasks.spans.model:AlbertForSpans",
    graph_class="albert_keras.serving.graph.task_models:SpanModel",
    fields=("context", "question"),
    sample={
        "question": "When did the ferry leave?",
        "context": "The ferry left Bergen at six in the morning.",
    },
    targets=dict.fromkeys(("start_positions", "end_positions", "is_impossible"), "int32"),
    outputs={"start_logits": "float [N, S]", "end_logits": "float [N, S]"},
    card_purpose="answers a question with a span of a passage",
    hub_pipeline="question-answering",
    check_task={"name": "squad1"},
    per_position=True,
    uses_windows=True,
    finds_spans=True,
)
SPANS_OR_NONE = dataclasses.replace(
    SPANS,
    name="spans_or_none",
    official_tasks=("squad2",),
    outputs={
        "start_log_probs": "float [N, 5]",
        "start_indices": "int [N, 5]",
        "end_log_probs": "float [N, 25], the ends of the first start first",
        "end_indices": "int [N, 25]",
        "null_logits": "float [N]",
    },
    model_class="albert_keras.tasks.spans.model:AlbertForSpans",
    card_purpose="answers a question with a span of a passage, or says that there is none",
    check_task={"name": "squad2"},
    per_position=False,
    model_settings={"can_be_none": True},
)
