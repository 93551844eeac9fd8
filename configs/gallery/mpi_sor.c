/* mpi_sor SIZE OMEGA SWEEPS: solves Laplace's equation on SIZE x SIZE points by red-black successive over-relaxation.
 * The rows are divided over the ranks. The loss is log10 of the largest change in the last sweep. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int width;
static double* at(double* grid, int row, int column) { return grid + (long)row * (width + 2) + column; }

/* Exchanges the outer rows with the ranks above and below. */
static void exchange(double* grid, int rows, int above, int below) {
    MPI_Sendrecv(at(grid, 1, 0), width + 2, MPI_DOUBLE, above, 0, at(grid, rows + 1, 0), width + 2, MPI_DOUBLE, below, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(at(grid, rows, 0), width + 2, MPI_DOUBLE, below, 1, at(grid, 0, 0), width + 2, MPI_DOUBLE, above, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

/* Updates all points of one colour and returns the largest change. */
static double relax(double* grid, int rows, int first_row, int colour, double omega) {
    double largest = 0;
    for (int row = 1; row <= rows; ++row) {
        for (int column = 1 + (first_row + row + 1 + colour) % 2; column <= width; column += 2) {
            double* point = at(grid, row, column);
            const double around = *at(grid, row - 1, column) + *at(grid, row + 1, column) + point[-1] + point[1];
            const double change = omega * (around / 4 - *point);
            *point += change;
            largest = fmax(largest, fabs(change));
        }
    }
    return largest;
}

int main(int argc, char** argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 4 || (width = atoi(argv[1])) < ranks) {
        if (rank == 0) {
            fprintf(stderr, "usage: mpi_sor SIZE OMEGA SWEEPS, with a SIZE of %d or more\n", ranks);
        }
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const double omega = atof(argv[2]);
    const int first_row = (int)((long)width * rank / ranks), rows = (int)((long)width * (rank + 1) / ranks) - first_row;
    const int above = rank > 0 ? rank - 1 : MPI_PROC_NULL, below = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    double* grid = calloc((size_t)(rows + 2) * (width + 2), sizeof(double));
    for (int column = 0; rank == 0 && column < width + 2; ++column) {
        *at(grid, 0, column) = 1; /* the upper edge */
    }
    double change = 0;
    for (int sweep = atoi(argv[3]); sweep > 0; --sweep) {
        change = 0;
        for (int colour = 0; colour < 2; ++colour) {
            change = fmax(change, relax(grid, rows, first_row, colour, omega));
            exchange(grid, rows, above, below);
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, &change, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("finch loss=%.6f\n", log10(change + 1e-300));
    }
    free(grid);
    return MPI_Finalize();
}
