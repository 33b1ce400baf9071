// A thread per pair.
FN void load_pair(INDEX molecule, int a, int b, INDEX atoms, const double* R, const double* record, const double* pair,
                  int elements, Pair* x) {
    const double* A = R + (molecule * atoms + a) * 3;
    const double* B = R + (molecule * atoms + b) * 3;
    const double dx = B[0] - A[0], dy = B[1] - A[1], dz = B[2] - A[2];
    x->R = sqrt(dx * dx + dy * dy + dz * dz);
    const double step = 1 / x->R;
    x->ux = dx * step;
    x->uy = dy * step;
    x->uz = dz * step;
    UNROLL for (int field = 0; field < FIELDS; ++field) {
        x->a[field] = record[a * FIELDS + field];
        x->b[field] = record[b * FIELDS + field];
    }
    const double* of = pair + (INDEX(x->a[0]) * elements + INDEX(x->b[0])) * PAIR_FIELDS;
    UNROLL for (int field = 0; field < PAIR_FIELDS; ++field) x->pair[field] = of[field];
}

// Leaves the kernel where there is nothing to do.
#define PAIR_OF_THREAD                                                                        \
    const INDEX item = begin + INDEX(blockIdx.x) * THREADS + threadIdx.x;                     \
    if (item >= end) return;                                                                  \
    const INDEX molecule = item / (rows * columns), rest = item % (rows * columns);           \
    const int a = row_atom[rest / columns], b = column_atom[rest % columns];                  \
    if (triangle && b <= a) return;
