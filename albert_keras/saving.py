"""Registers every class of this project with Keras: `import albert_keras.saving`.

Keras finds a custom class inside a `.keras` file only if the class was registered before the file
is loaded. A new process imports this module, and then calls `keras.models.load_model` as usual.
"""

import importlib

# By name, as the modules of tasks are above the readers of files, which import this one.
for _module in (
    "albert_keras.models.encoder",
    "albert_keras.models.preprocessor",
    "albert_keras.models.multiple_choice",
    "albert_keras.models.pretraining",
    "albert_keras.models.similarity",
    "albert_keras.models.question_answering",
    "albert_keras.models.token_classification",
    "albert_keras.models.text_classifiers",
    "albert_keras.optimization.lamb",
    "albert_keras.optimization.muon",
    "albert_keras.optimization.schedules",
):
    importlib.import_module(_module)
