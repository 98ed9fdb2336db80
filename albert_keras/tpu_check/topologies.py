"""TPUs that a program can be compiled for."""

from typing import NamedTuple


class Topology(NamedTuple):
    """One TPU of a single host.

    Attributes:
        layout: str. Generation and arrangement of the chips, as libtpu names it.
        replicas: int. What `TPUStrategy` trains on: cores on v2 and v3; whole chips after that,
            where the two cores of a v4 or v5p act as one.
        replicas_per_chip: int.
        memory_gib: int. Memory of a replica. Some of it the compiler keeps for itself.
        options: dict. Further arguments of `jax.experimental.topologies.get_topology_desc`.
    """

    layout: str
    replicas: int
    replicas_per_chip: int
    memory_gib: int
    options: dict = {}


#: By the names of Google Cloud; "v5e-8" is called v5litepod-8 there.
TOPOLOGIES = {
    "v2-8": Topology("v2:2x2", 8, 2, 8),
    "v3-8": Topology("v3:2x2", 8, 2, 16),
    "v4-8": Topology("v4:2x2x1", 4, 1, 32, {"chip_config_name": "megacore"}),
    "v5e-8": Topology("v5e:2x4", 8, 1, 16),
    "v5p-8": Topology("v5p:2x2x1", 4, 1, 95),
    "v6e-8": Topology("v6e:2x4", 8, 1, 32),
}
