// Contracted shells at points. A shell is SHELL_FIELDS integers (kind, primitives, columns, first number), its primitives
// are records of an exponent and the coefficients of all columns.
// Components by ORDER: value; gradient (x, y, z); second derivatives (xx, xy, xz, yy, yz, zz).
#define VALUES (ORDER == 0 ? 1 : ORDER == 1 ? 4 : 10)

// Pass the values of all functions of a shell to `store(column, component, function, value)`.
template <class S>
FN void shell_values(const int* shell, const double* primitive, WIDE x, WIDE y, WIDE z, const S& store) {
    const int count = shell[1], columns = shell[2];
    const double* record = primitive + shell[3];
    const WIDE r2 = x * x + y * y + z * z;
    WIDE R[MAX_COLUMNS], T[MAX_COLUMNS], U[MAX_COLUMNS];
    for (int q = 0; q < columns; ++q) R[q] = T[q] = U[q] = r2 * 0.0;
    NO_UNROLL for (int k = 0; k < count; ++k, record += 1 + columns) {
        const WIDE e = falling(r2 * record[0]);
#if ORDER
        const WIDE slope = e * (-2 * record[0]);
#endif
        for (int q = 0; q < columns; ++q) {
            R[q] += e * record[1 + q];
#if ORDER
            T[q] += slope * record[1 + q];
#endif
#if ORDER > 1
            U[q] += slope * (-2 * record[0]) * record[1 + q];
#endif
        }
    }
    for (int q = 0; q < columns; ++q)
        functions_of(shell[0], x, y, z, R[q], T[q], U[q],
                     [&](int component, int m, WIDE v) { store(q, component, m, narrow(v)); });
}
