"""Muon: momentum, orthogonalized, for the matrices of the blocks; AdamW for all other weights."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from albert_keras.optimization.lamb import AdamW, updated

#: Coefficients of the quintic iteration (Jordan 2024): they raise small singular values fastest, at
#: the price of ending between about 0.7 and 1.2 instead of at 1.
_A, _B, _C = 3.4445, -4.7750, 2.0315
#: Root mean square of AdamW's usual update, so that both parts can share one learning rate (Liu et
#: al. 2025, section 2.2).
_UPDATE_RMS = 0.2


@keras.saving.register_keras_serializable(package="albert_keras")
class Muon(AdamW):
    """Orthogonalizes the momentum of matrices; all other variables are updated by `AdamW`.

    For a matrix w of shape [m, n] with gradient g, at learning rate lr:

        b = momentum * b + g
        u = orthogonalize(g + momentum * b) * 0.2 * sqrt(max(m, n))
        w = w - lr * (u + weight_decay * w)

    All directions of a matrix change at the same rate, whatever their share of the gradient. A
    matrix that is used several times (the shared blocks of ALBERT) has one summed gradient. If a
    gradient is not finite, weight and momentum stay bit for bit the same, as in `Lamb`.

    Args:
        learning_rate: float or LearningRateSchedule.
        momentum: float. Decay rate of the momentum of matrices.
        newton_schulz_iterations: int. Each takes three matrix products.
        matrices: list of str. Regular expressions. Variables of rank 2 whose name contains a match
            are orthogonalized. The default are the kernels of the blocks: embedding tables, heads
            and the pooler stay with AdamW.
        matrix_dtype: str. Type in which matrices are multiplied: "bfloat16" or "float32".
        **kwargs: Of `AdamW`, for all other variables; `weight_decay` is for both.

    Source:
        Jordan et al. 2024 (https://kellerjordan.github.io/posts/muon/) for the method; Liu et al.
        2025 (https://arxiv.org/abs/2502.16982) for weight decay and the factor 0.2.
    """

    def __init__(
        self,
        learning_rate: Any = 1e-3,
        momentum: float = 0.95,
        newton_schulz_iterations: int = 5,
        matrices: Sequence[str] = ("transformer/.*kernel$",),
        matrix_dtype: str = "float32",
        name: str = "Muon",
        **kwargs: Any,
    ):
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        self.momentum = momentum
        self.newton_schulz_iterations = newton_schulz_iterations
        self.matrices, self.matrix_dtype = list(matrices), matrix_dtype

    def moment_names(self, variable: tf.Variable) -> tuple[str, ...]:
        return ("m",) if self._is_orthogonalized(variable) else super().moment_names(variable)

    def update_step(self, gradient: Any, variable: tf.Variable, learning_rate: Any) -> None:
        if not self._is_orthogonalized(variable):
            super().update_step(gradient, variable, learning_rate)
            return
        gradient, weight = tf.convert_to_tensor(gradient), tf.convert_to_tensor(variable)
        slot = self.moments_of(variable)["m"]
        is_usable = tf.math.is_finite(tf.nn.l2_loss(gradient))
        momentum = slot * self.momentum + gradient
        direction = orthogonalize(
            gradient + self.momentum * momentum, self.newton_schulz_iterations, self.matrix_dtype
        )
        update = direction * (_UPDATE_RMS * max(weight.shape) ** 0.5)
        if self._is_decayed(variable):
            update += self.weight_decay * weight
        rate = tf.cast(learning_rate, variable.dtype)
        slot.assign(tf.where(is_usable, momentum, slot))
        variable.assign(updated(is_usable, weight, update, rate))

    def _is_orthogonalized(self, variable):
        return len(variable.shape) == 2 and self._is_named_by(self.matrices, variable)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "momentum": self.momentum,
            "newton_schulz_iterations": self.newton_schulz_iterations,
            "matrices": self.matrices,
            "matrix_dtype": self.matrix_dtype,
        }


def orthogonalize(matrix: tf.Tensor, iterations: int = 5, dtype: str = "float32") -> tf.Tensor:
    """Returns a matrix with the same singular vectors and singular values near 1.

    Args:
        matrix: float [m, n]. A matrix of zeros gives zeros.
        iterations: int. Newton-Schulz iterations. After 5 of them all singular values that were
            above a hundredth of the largest one are between about 0.7 and 1.2.
        dtype: str. Type of the products.

    Returns:
        Tensor like `matrix`.
    """
    # The Frobenius norm is an upper bound of the largest singular value.
    x = tf.cast(tf.math.divide_no_nan(matrix, tf.norm(matrix)), dtype)
    is_tall = matrix.shape[0] > matrix.shape[1]
    if is_tall:  # the smaller of the two products x xᵀ and xᵀ x
        x = tf.transpose(x)
    for _ in range(iterations):
        product = tf.matmul(x, x, transpose_b=True)
        x = _A * x + tf.matmul(_B * product + _C * tf.matmul(product, product), x)
    return tf.cast(tf.transpose(x) if is_tall else x, matrix.dtype)
