"""How similar two texts are: the cosine of their vectors."""

from albert_keras.tasks.kind import TaskKind

SIMILARITY = TaskKind(
    name="similarity",
    own_tasks=("similarity",),
    task_class="albert_keras.tasks.similarity.task:SimilarityTask",
    model_class="albert_keras.tasks.similarity.model:AlbertForSimilarity",
    graph_class="albert_keras.serving.graph.task_models:SimilarityModel",
    fields=("text",),
    sample={"text": "The ferry left the harbour of Bergen."},
    targets={"labels": "float32"},
    outputs={"cosine": "float [N]"},
    card_purpose="scores how similar two texts are, and returns a vector for a text",
    hub_pipeline="sentence-similarity",
    check_task={"name": "similarity"},
    texts_per_row=2,
)
