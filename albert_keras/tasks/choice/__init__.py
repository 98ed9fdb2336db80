"""Questions about a passage with options to choose from, as in RACE."""

from albert_keras.tasks.kind import TaskKind

CHOICE = TaskKind(
    name="choice",
    official_tasks=("race",),
    task_class="albert_keras.tasks.choice.task:ChoiceTask",
    model_class="albert_keras.tasks.choice.model:AlbertForMultipleChoice",
    graph_class="albert_keras.serving.graph.task_models:ChoiceModel",
    fields=("context", "question", "options"),
    sample={
        "question": "When did the ferry leave?",
        "context": "The ferry left Bergen at six in the morning.",
        "options": ["at noon", "at six in the morning"],
    },
    targets={"labels": "int32"},
    outputs={"logits": "float [N, options]"},
    card_purpose="chooses one of several options",
    hub_pipeline="multiple-choice",
    check_task={"name": "race"},
    has_options=True,
)
