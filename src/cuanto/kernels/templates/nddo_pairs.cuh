// The pair of a thread; `count` is 0 if it has none.
struct Pairs {
    INDEX molecule;
    int a, b[1], count;
};

FN Pairs first_pairs(const Grid& grid) {
    Pairs at;
    const INDEX item = grid.begin + INDEX(blockIdx.x) * THREADS + threadIdx.x;
    at.count = item < grid.end;
    if (!at.count) return at;
    const INDEX rest = item % (grid.rows * grid.columns);
    at.molecule = item / (grid.rows * grid.columns);
    at.a = grid.row_atom[rest / grid.columns];
    at.b[0] = grid.column_atom[rest % grid.columns];
    at.count = !grid.triangle || at.b[0] > at.a;
    return at;
}

FN void next_pairs(const Grid&, Pairs* at) { at->count = 0; }
