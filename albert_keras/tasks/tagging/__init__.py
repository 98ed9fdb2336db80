"""A tag for each word of a sentence: entities, parts of speech."""

from albert_keras.tasks.kind import TaskKind

TAGGING = TaskKind(
    name="tagging",
    own_tasks=("tagging",),
    task_class="albert_keras.tasks.tagging.task:TagTask",
    model_class="albert_keras.tasks.tagging.model:AlbertForTagging",
    graph_class="albert_keras.serving.graph.tagging_model:TaggingModel",
    fields=("text",),
    sample={"text": "Angela met the president in Berlin ."},
    targets={"tag_ids": "int32"},
    outputs={"logits": "float [N, S, tags]"},
    card_purpose="assigns one of {labels} tags to each word",
    hub_pipeline="token-classification",
    check_task={"name": "tagging", "labels": ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")},
    per_position=True,
    uses_windows=True,
)
