"""Halo exchange: Jacobi's iteration on a square, rows shared out among the ranks.

Each step sends one row to each neighbour and takes theirs, both ways at once.
"""
import sys
import time

import numpy
from mpi4py import MPI

POINTS = 1024
STEPS = int(sys.argv[1])

ranks = MPI.COMM_WORLD
rank, size = ranks.Get_rank(), ranks.Get_size()
above = rank - 1 if rank > 0 else MPI.PROC_NULL
below = rank + 1 if rank < size - 1 else MPI.PROC_NULL
first, last = POINTS * rank // size, POINTS * (rank + 1) // size

# The edge at the top is 1, all else 0; a row of each neighbour on either side.
old = numpy.zeros((last - first + 2, POINTS + 2))
if rank == 0:
    old[0, :] = 1.0
new = old.copy()

ranks.Barrier()
began = time.perf_counter()
communication = 0.0
for step in range(STEPS):
    asked = time.perf_counter()
    ranks.Sendrecv(old[1], above, 0, old[-1], below, 0)
    ranks.Sendrecv(old[-2], below, 1, old[0], above, 1)
    communication += time.perf_counter() - asked
    new[1:-1, 1:-1] = 0.25 * (old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:])
    old, new = new, old
    if step % 10 == 9:
        asked = time.perf_counter()
        change = ranks.allreduce(float(numpy.abs(new[1:-1] - old[1:-1]).max()), MPI.MAX)
        communication += time.perf_counter() - asked
elapsed = ranks.allreduce(time.perf_counter() - began, MPI.MAX)
communication = ranks.allreduce(communication, MPI.SUM) / size
rows = ranks.gather(old[1:-1].sum(axis=1))
if rank == 0:
    print(f"change {change:.9e}")
    print(f"sum {numpy.concatenate(rows).sum():.9e}")
    print(f"time {elapsed:.4f} s")
    print(f"communication {communication:.4f} s")
