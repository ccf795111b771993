"""Small operations among all ranks, which is most of what there is where processes outnumber
cores: each waits for others that have no core.
"""
import time

import numpy
from mpi4py import MPI

ranks = MPI.COMM_WORLD
rank, size = ranks.Get_rank(), ranks.Get_size()
right, left = (rank + 1) % size, (rank - 1) % size
wrong = 0


def microseconds(operation):
    """Of one, from as many as take a third of a second."""
    count = 1
    while True:
        ranks.Barrier()
        began = time.perf_counter()
        for turn in range(count):
            operation(turn)
        took = ranks.allreduce(time.perf_counter() - began, MPI.MAX)
        if took > 0.3:
            return took / count * 1e6
        count *= 2 if took > 0.1 else 4


mine, sums = numpy.zeros(1, dtype="i8"), numpy.zeros(1, dtype="i8")
blocks, taken = numpy.zeros((size, 128), dtype="i8"), numpy.zeros((size, 128), dtype="i8")


def allreduce(turn):
    global wrong
    mine[0] = rank + turn
    ranks.Allreduce(mine, sums)
    wrong += int(sums[0]) != size * (size - 1) // 2 + size * turn


def alltoall(turn):
    global wrong
    blocks[:, 0] = rank + turn
    ranks.Alltoall(blocks, taken)
    wrong += not numpy.array_equal(taken[:, 0], numpy.arange(size) + turn)


def ring(turn):
    global wrong
    mine[0] = rank + turn
    ranks.Sendrecv(mine, right, 0, sums, left, 0)
    wrong += int(sums[0]) != left + turn


took = [(operation.__name__, microseconds(operation)) for operation in (allreduce, alltoall, ring)]
wrong = ranks.allreduce(wrong)
if rank == 0:
    for name, us in took:
        print(f"{name} {us:.3f} us")
    print("all are right" if wrong == 0 else f"WRONG: {wrong} results")
