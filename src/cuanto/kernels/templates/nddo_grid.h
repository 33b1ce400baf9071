// All pairs of the atoms of two lists in molecules of one composition; with `triangle` the lists are the same, and each
// pair is done once.
struct Grid {
    INDEX begin, end, rows, columns;
    int triangle;
    const int *row_atom, *column_atom;
};
#define GRID Grid{begin, end, rows, columns, triangle, row_atom, column_atom}
#define FOR_PAIRS(at) for (Pairs at = first_pairs(GRID); at.count; next_pairs(GRID, &at))
