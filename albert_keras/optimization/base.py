"""What the optimizers of this project have in common: moments by name."""

import warnings
from collections.abc import Sequence
from typing import Any

from albert_keras.keras_versions import OptimizerOfBoth, name_of


class Optimizer(OptimizerOfBoth):
    """Base class of the optimizers of this project, which keep moments by name.

    A subclass has `moment_names` and `update_step(gradient, variable, learning_rate)`.
    """

    def moment_names(self, variable: Any) -> tuple[str, ...]:
        """Returns the names of the moments that are kept for a variable."""
        raise NotImplementedError

    def moments_of(self, variable: Any) -> dict[str, Any]:
        """Returns the moments of a variable by name; `build` must have been called."""
        return self._moments[self.number_of(variable)]

    def name_of(self, variable: Any) -> str:
        """Returns the full name of a variable, or of its copy on a replica."""
        return self._names[self.number_of(variable)]

    def build(self, var_list: Sequence[Any]) -> None:
        """Creates the moments of variables; later calls do nothing."""
        if "_moments" in vars(self):
            return
        super().build(var_list)
        self._names = [*map(name_of, var_list)]
        self._moments = [
            {
                name: self.add_variable_from_reference(variable, name)
                for name in self.moment_names(variable)
            }
            for variable in var_list
        ]
        self._built = True

    def save_own_variables(self, store: Any) -> None:
        for name, variable in self._state().items():
            store[name] = variable.numpy()

    def load_own_variables(self, store: Any) -> None:
        state = self._state()
        if state.keys() != set(store.keys()):
            warnings.warn(
                f"The file has the state of another optimizer, which {self.name} does not read.",
                stacklevel=2,
            )
            return
        for name, variable in state.items():
            variable.assign(store[name])

    def _state(self):
        """Returns the variables by names that do not depend on the version of Keras.

        They have the numbers of the weights, whose names are not always unique, nor the same in a
        model that is made again.
        """
        state = {"iteration": self._iterations}
        if hasattr(self._learning_rate, "assign"):
            state["learning_rate"] = self._learning_rate
        of_all = {
            "average": getattr(self, "_model_variables_moving_average", None),
            "accumulated": getattr(self, "_accumulated_gradients", None),
        }
        for number, moments in enumerate(getattr(self, "_moments", ())):
            further = {kind: variables[number] for kind, variables in of_all.items() if variables}
            state |= {f"{number}.{kind}": each for kind, each in (moments | further).items()}
        return state
