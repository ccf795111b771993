"""I/O through MPI-IO: a matrix of interleaved columns, written and read collectively.

Each rank has columns of its own, so its pieces lie between those of others: the ranks
exchange them before whole blocks go to the file (two-phase I/O).
"""
import os
import sys
import time

import numpy
from mpi4py import MPI

ROWS, COLUMNS = 2048, 1024
TURNS = int(sys.argv[1])

ranks = MPI.COMM_WORLD
rank, size = ranks.Get_rank(), ranks.Get_size()
mine = COLUMNS // size
assert mine * size == COLUMNS, "the number of ranks is to divide 1024"
part = MPI.DOUBLE.Create_subarray([ROWS, COLUMNS], [ROWS, mine], [0, rank * mine]).Commit()
hints = MPI.Info.Create()
hints["romio_cb_write"] = hints["romio_cb_read"] = "enable"

wrong = 0
ranks.Barrier()
began = time.perf_counter()
for turn in range(TURNS):
    written = numpy.arange(ROWS * mine, dtype=float) + rank * 1e7 + turn
    file = MPI.File.Open(ranks, "matrix", MPI.MODE_CREATE | MPI.MODE_RDWR, hints)
    file.Set_view(0, MPI.DOUBLE, part, "native", hints)
    file.Write_all(written)
    file.Set_view(0, MPI.DOUBLE, part, "native", hints)
    read = numpy.full_like(written, numpy.nan)
    file.Read_all(read)
    file.Close()
    wrong += int((read != written).sum())
elapsed = ranks.allreduce(time.perf_counter() - began, MPI.MAX)
wrong = ranks.allreduce(wrong, MPI.SUM)
if rank == 0:
    # The file itself, without MPI.
    matrix = numpy.fromfile("matrix", dtype=float)
    wrong += matrix.size != ROWS * COLUMNS
    matrix = numpy.resize(matrix, (ROWS, COLUMNS))
    for other in range(size):
        expected = numpy.arange(ROWS * mine, dtype=float).reshape(ROWS, mine) + other * 1e7 + TURNS - 1
        wrong += int((matrix[:, other * mine:(other + 1) * mine] != expected).sum())
    print("all bytes are right" if wrong == 0 else f"WRONG: {wrong} numbers")
    print(f"time {elapsed:.4f} s")
    print(f"rate {TURNS * ROWS * COLUMNS * 16 / elapsed / 1e6:.1f} MB/s")
ranks.Barrier()
if rank == 0:
    os.remove("matrix")
