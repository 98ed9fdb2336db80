import numpy as np
import pytest

from albert_keras.tasks.labels import check_labels, label_numbers
from data_pipeline.errors import InputError


@pytest.mark.parametrize("labels", [(), ("yes",), ("yes", "no", "yes")])
def test_fewer_than_two_different_labels_are_refused(labels):
    check_labels(("yes", "no"), "`labels`")
    with pytest.raises(InputError, match=f"`labels` must be at least two.*: {', '.join(labels)}"):
        check_labels(labels, "`labels`")


def test_labels_are_numbered_by_their_places():
    numbers = label_numbers(iter(["no", "yes", "no"]), ("yes", "no"))
    assert numbers.dtype == np.int64 and numbers.tolist() == [1, 0, 1]
    with pytest.raises(InputError, match="`maybe` is unknown"):
        label_numbers(["no", "maybe"], ("yes", "no"))
