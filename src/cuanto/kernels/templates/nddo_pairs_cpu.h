// Atom a uniform, atoms b in lanes.
FN void load_row(int a, const double* record, Pair* x) {
    for (int field = 0; field < FIELDS; ++field) x->a[field] = vset(record[a * FIELDS + field]);
}

// Beyond the end the last column is repeated; the number of those that count.
FN int load_columns(INDEX column, INDEX columns, const int* column_atom, int a, const double* R, const double* record,
                    const double* pair, int elements, Pair* x) {
    for (int lane = 0; lane < LANES; ++lane) {
        const int b = column_atom[column + lane < columns ? column + lane : columns - 1];
        x->ux[lane] = R[3 * b] - R[3 * a];
        x->uy[lane] = R[3 * b + 1] - R[3 * a + 1];
        x->uz[lane] = R[3 * b + 2] - R[3 * a + 2];
        for (int field = 0; field < FIELDS; ++field) x->b[field][lane] = record[b * FIELDS + field];
        const double* of = pair + (INDEX(record[a * FIELDS]) * elements + INDEX(record[b * FIELDS])) * PAIR_FIELDS;
        for (int field = 0; field < PAIR_FIELDS; ++field) x->pair[field][lane] = of[field];
    }
    x->R = vsqrt(x->ux * x->ux + x->uy * x->uy + x->uz * x->uz);
    const VEC step = vrcp(x->R);
    x->ux = x->ux * step;
    x->uy = x->uy * step;
    x->uz = x->uz * step;
    return columns - column < LANES ? int(columns - column) : LANES;
}
