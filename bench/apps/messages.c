/* Short messages and small collective operations, as programs have them: each message differs,
 * is written by its sender and read by its receiver. Prints microseconds of each; for the ping-pong
 * half a round trip, for many at once the time of one of them. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

enum { TAG = 1, MANY = 16, MOST_WORDS = 128, MOST_RANKS = 64 };

static int rank, size, partner, right, left;
static long wrong;
static uint64_t to[MOST_RANKS][MOST_WORDS], from[MOST_RANKS][MOST_WORDS];

/* A word of a message, which no other word is. */
static uint64_t content(int of_rank, long turn, int which, int at) {
    return (uint64_t)of_rank << 56 | (uint64_t)which << 48 | (uint64_t)at << 40 | ((uint64_t)turn & 0xffffffffff);
}

static void write_message(int which, int bytes, long turn) {
    for (int at = 0; at < bytes / 8; at++) to[which][at] = content(rank, turn, which, at);
}

static void read_message(int which, int bytes, int of_rank, long turn, int their_which) {
    for (int at = 0; at < bytes / 8; at++) wrong += from[which][at] != content(of_rank, turn, their_which, at);
}

static void send_one(int peer, long turn) {
    write_message(0, 8, turn);
    MPI_Send(to[0], 8, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
}

static void receive_one(int peer, long turn) {
    MPI_Recv(from[0], 8, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    read_message(0, 8, peer, turn, 0);
}

static void ping_pong(long turn) {
    if (partner >= size) return;
    if (rank % 2 == 0) {
        send_one(partner, turn);
        receive_one(partner, turn);
    } else {
        receive_one(partner, turn);
        send_one(partner, turn);
    }
}

static void ring(long turn) {
    write_message(0, 8, turn);
    MPI_Sendrecv(to[0], 8, MPI_BYTE, right, TAG, from[0], 8, MPI_BYTE, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    read_message(0, 8, left, turn, 0);
}

static void nonblocking_ring(long turn) {
    MPI_Request both[2];
    write_message(0, 8, turn);
    MPI_Irecv(from[0], 8, MPI_BYTE, left, TAG, MPI_COMM_WORLD, &both[0]);
    MPI_Isend(to[0], 8, MPI_BYTE, right, TAG, MPI_COMM_WORLD, &both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    read_message(0, 8, left, turn, 0);
}

/* Many of 512 B from the even ranks to the odd ones, and an answer. */
static void many(long turn) {
    MPI_Request all[MANY];
    if (partner >= size) return;
    for (int which = 0; which < MANY; which++) {
        if (rank % 2 == 0) {
            write_message(which, 512, turn);
            MPI_Isend(to[which], 512, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &all[which]);
        } else {
            MPI_Irecv(from[which], 512, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &all[which]);
        }
    }
    MPI_Waitall(MANY, all, MPI_STATUSES_IGNORE);
    if (rank % 2 == 0) {
        receive_one(partner, turn);
    } else {
        for (int which = 0; which < MANY; which++) read_message(which, 512, partner, turn, which);
        send_one(partner, turn);
    }
}

static void allreduce(long turn) {
    long mine = rank + turn, sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    wrong += sum != (long)size * (size - 1) / 2 + size * turn;
}

static void alltoall(long turn) {
    for (int peer = 0; peer < size; peer++) write_message(peer, 1024, turn);
    MPI_Alltoall(to, 1024, MPI_BYTE, from, 1024, MPI_BYTE, MPI_COMM_WORLD);
    for (int peer = 0; peer < size; peer++) read_message(peer, 1024, peer, turn, rank);
}

static void barrier(long turn) {
    (void)turn;
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Of one, from as many as take a third of a second. */
static double microseconds(void (*operation)(long)) {
    for (long count = 16;; count *= 2) {
        double took, slowest;
        MPI_Barrier(MPI_COMM_WORLD);
        took = -MPI_Wtime();
        for (long turn = 0; turn < count; turn++) operation(turn);
        took += MPI_Wtime();
        MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (slowest > 0.3) return slowest / count * 1e6;
    }
}

int main(int count, char **arguments) {
    static const struct { const char *name; void (*operation)(long); double parts; } all[] = {
        { "ping-pong 8 B", ping_pong, 2 },
        { "Sendrecv 8 B", ring, 1 },
        { "Irecv, Isend, Waitall 8 B", nonblocking_ring, 1 },
        { "16 Isend of 512 B, each", many, MANY },
        { "Allreduce 8 B", allreduce, 1 },
        { "Alltoall 1 KiB", alltoall, 1 },
        { "Barrier", barrier, 1 },
    };
    long sum = 0;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > MOST_RANKS) {
        if (rank == 0) fprintf(stderr, "at most %d ranks\n", MOST_RANKS);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    partner = rank ^ 1, right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (size_t at = 0; at < sizeof all / sizeof *all; at++) {
        double us = microseconds(all[at].operation) / all[at].parts;
        if (rank == 0) printf("%s: %.3f us\n", all[at].name, us);
    }
    MPI_Allreduce(&wrong, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf(sum == 0 ? "all are right\n" : "WRONG: %ld words or sums\n", sum);
    MPI_Finalize();
    return 0;
}
