// Pairs of a chunk of whole rows: atom a is the same in all lanes, atoms b are consecutive columns. Beyond the end of a row its
// last column is repeated; `count` lanes are valid.
struct Pairs {
    INDEX molecule, row, column;
    int a, b[LANES], count;
};

// The first column of a row; with `triangle` only columns of later atoms.
FN INDEX first_column(const Grid& grid, int a) {
    INDEX low = 0, high = grid.triangle ? grid.columns : 0;
    while (low < high) {
        const INDEX middle = (low + high) / 2;
        if (grid.column_atom[middle] > a) high = middle;
        else low = middle + 1;
    }
    return low;
}

FN void find_pairs(const Grid& grid, Pairs* at) {
    while (at->column >= grid.columns) {
        if (++at->row >= grid.end / grid.columns) {
            at->count = 0;
            return;
        }
        at->molecule = at->row / grid.rows;
        at->a = grid.row_atom[at->row % grid.rows];
        at->column = first_column(grid, at->a);
    }
    const INDEX left = grid.columns - at->column;
    at->count = left < LANES ? int(left) : LANES;
    for (int lane = 0; lane < LANES; ++lane) at->b[lane] = grid.column_atom[at->column + (lane < left ? lane : left - 1)];
}

FN Pairs first_pairs(const Grid& grid) {
    Pairs at;
    at.row = grid.begin / grid.columns - 1;
    at.column = grid.columns;
    find_pairs(grid, &at);
    return at;
}

FN void next_pairs(const Grid& grid, Pairs* at) {
    at->column += LANES;
    find_pairs(grid, at);
}
