"""Registers every class of this project with Keras: `import albert_keras.saving`.

Keras finds a custom class inside a `.keras` file only if the class was registered before the file
is loaded. A new process imports this module, and then calls `keras.models.load_model` as usual.
"""

from albert_keras.models.registration import register_classes

register_classes()
