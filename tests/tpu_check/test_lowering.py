"""Programs of newer TensorFlow are numbered as the TPU's compiler requires."""

from tensorflow.compiler.xla.service import hlo_pb2

from tests.tpu_check.lowering import _renumber


def program(number_of):
    """Returns a module with two computations of two instructions, numbered by `number_of`."""
    module = hlo_pb2.HloModuleProto(entry_computation_id=2)
    for computation in (1, 2):
        part = module.computations.add(id=computation, root_id=number_of(computation, 2))
        part.instructions.add(id=number_of(computation, 1), opcode="parameter")
        second = part.instructions.add(id=number_of(computation, 2), opcode="call")
        second.operand_ids.append(number_of(computation, 1))
        second.control_predecessor_ids.append(number_of(computation, 1))
    module.computations[1].instructions[1].called_computation_ids.append(1)
    return module


def test_large_numbers_are_replaced_and_references_follow():
    module = program(lambda computation, position: (computation << 32) + position)
    _renumber(module)
    assert module == program(lambda computation, position: 2 * (computation - 1) + position)


def test_small_numbers_are_kept():
    module = program(lambda computation, position: 10 * computation + position)
    _renumber(module)
    assert module == program(lambda computation, position: 10 * computation + position)
