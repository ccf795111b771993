"""A Fourier transform of a square matrix, whose transpositions go by alltoall.

Rows are shared out; each is transformed, the matrix transposed, each row transformed
again. The inverse brings back what there was, which is checked; so is a sum of the transform
that counts each point by its place, which without the transpositions would be another.
"""
import sys
import time

import numpy
from mpi4py import MPI

POINTS = 1024
TURNS = int(sys.argv[1])

ranks = MPI.COMM_WORLD
rank, size = ranks.Get_rank(), ranks.Get_size()
mine = POINTS // size
assert mine * size == POINTS, "the number of ranks is to divide 1024"
communication = 0.0


def transposed(rows):
    """The rows of the transposed matrix that are this rank's."""
    global communication
    blocks = numpy.ascontiguousarray(rows.reshape(mine, size, mine).transpose(1, 2, 0))
    taken = numpy.empty_like(blocks)
    asked = time.perf_counter()
    ranks.Alltoall(blocks, taken)
    communication += time.perf_counter() - asked
    return numpy.ascontiguousarray(taken.transpose(1, 0, 2)).reshape(mine, POINTS)


numbers = numpy.random.default_rng(rank)
matrix = numbers.random((mine, POINTS)) + 1j * numbers.random((mine, POINTS))
ranks.Barrier()
began = time.perf_counter()
worst = 0.0
for turn in range(TURNS):
    matrix *= 1.01  # what a turn sends is not what the one before has sent
    there = numpy.fft.fft(transposed(numpy.fft.fft(matrix)))
    back = numpy.fft.ifft(transposed(numpy.fft.ifft(there)))
    worst = max(worst, float(numpy.abs(back - matrix).max()))
elapsed = ranks.allreduce(time.perf_counter() - began, MPI.MAX)
worst = ranks.allreduce(worst, MPI.MAX)
communication = ranks.allreduce(communication, MPI.SUM) / size
places = numpy.arange(rank * mine, (rank + 1) * mine)[:, None] * 3.0 + numpy.arange(POINTS)
power = ranks.allreduce(float((numpy.abs(there) ** 2 * places).sum()), MPI.SUM)
if rank == 0:
    print(f"power {power:.9e}")
    print("the inverse is right" if worst < 1e-12 else f"WRONG by {worst}")
    print(f"time {elapsed:.4f} s")
    print(f"communication {communication:.4f} s")
