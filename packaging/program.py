"""Two ranks exchange 8 bytes to 16 MiB in both directions, and check every byte."""

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, other = world.rank, 1 - world.rank
assert world.size == 2, "start two ranks"

for power in (3, 10, 16, 20, 24):
    sent = bytes([rank + power]) * (1 << power)
    received = bytearray(len(sent))
    world.Sendrecv(sent, other, 1, received, other, 1)
    assert received == bytes([other + power]) * (1 << power), f"{1 << power} bytes were spoilt"

total = world.allreduce(rank + 1)
assert total == 3, total
if rank == 0:
    print(f"all bytes arrived, by {MPI.Get_library_version().splitlines()[0]}")
