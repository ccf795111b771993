/* Windows: put, get, accumulate, fetch and operate, compare and swap; fence,
 * lock, and post-start-complete-wait. */
#include "check.h"

enum { CELLS = 4096 };

static void fences(int *memory, MPI_Win window)
{
	int to = (rank + 1) % size, from = (rank + size - 1) % size;
	int *out = malloc(CELLS * sizeof(int)), *in = malloc(CELLS * sizeof(int));
	for (int count = 1; count <= CELLS; count *= 8) {
		for (int i = 0; i < count; i++)
			out[i] = rank * 100000 + i + count;
		MPI_Win_fence(0, window);
		MPI_Put(out, count, MPI_INT, to, 0, count, MPI_INT, window);
		MPI_Win_fence(0, window);
		for (int i = 0; i < count; i++)
			CHECK(memory[i] == from * 100000 + i + count);
		MPI_Win_fence(0, window);
		MPI_Get(in, count, MPI_INT, to, 0, count, MPI_INT, window);
		MPI_Win_fence(0, window);
		for (int i = 0; i < count; i++)
			CHECK(in[i] == rank * 100000 + i + count);
		MPI_Accumulate(out, count, MPI_INT, to, 0, count, MPI_INT, MPI_SUM, window);
		MPI_Win_fence(0, window);
		for (int i = 0; i < count; i++)
			CHECK(memory[i] == 2 * (from * 100000 + i + count));
		MPI_Win_fence(0, window);
	}
	free(out);
	free(in);
	passed("fence: put, get, accumulate");
}

static void locks(int *memory, MPI_Win window)
{
	enum { ROUNDS = 200 };
	int one = 1, old;
	MPI_Win_fence(0, window);
	memory[0] = memory[1] = 0;
	MPI_Win_fence(0, window);
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
		int value;
		MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
		MPI_Win_flush(0, window);
		value++;
		MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
		MPI_Win_unlock(0, window);
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
		MPI_Fetch_and_op(&one, &old, MPI_INT, 0, 1, MPI_SUM, window);
		MPI_Win_unlock(0, window);
		CHECK(old >= 0 && old < ROUNDS * size);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
	int both[2];
	MPI_Get(both, 2, MPI_INT, 0, 0, 2, MPI_INT, window);
	MPI_Win_unlock(0, window);
	CHECK(both[0] == ROUNDS * size && both[1] == ROUNDS * size);
	int expected = ROUNDS * size, mine = 10 * size + rank;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
	MPI_Compare_and_swap(&mine, &expected, &old, MPI_INT, 0, 1, window);
	MPI_Win_unlock(0, window);
	int won = old == expected, winners;
	MPI_Allreduce(&won, &winners, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	CHECK(winners == 1);
	passed("lock: get, put, fetch and operate, compare and swap");
}

static void posts(int *memory, MPI_Win window)
{
	MPI_Group world, to, from;
	int next = (rank + 1) % size, previous = (rank + size - 1) % size;
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 1, &next, &to);
	MPI_Group_incl(world, 1, &previous, &from);
	for (int i = 0; i < 20; i++) {
		int value = rank * 100 + i;
		MPI_Win_post(from, 0, window);
		MPI_Win_start(to, 0, window);
		MPI_Put(&value, 1, MPI_INT, next, 5, 1, MPI_INT, window);
		MPI_Win_complete(window);
		MPI_Win_wait(window);
		CHECK(memory[5] == previous * 100 + i);
	}
	MPI_Group_free(&to);
	MPI_Group_free(&from);
	MPI_Group_free(&world);
	passed("post, start, complete, wait");
}

int main(int argc, char **argv)
{
	start(&argc, &argv);
	int *memory;
	MPI_Win window;
	MPI_Win_allocate(CELLS * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
	fences(memory, window);
	locks(memory, window);
	posts(memory, window);
	MPI_Win_free(&window);
	memory = calloc(CELLS, sizeof(int));
	MPI_Win_create(memory, CELLS * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	fences(memory, window);
	locks(memory, window);
	MPI_Win_free(&window);
	free(memory);
	MPI_Finalize();
	return 0;
}
