// Contracted shells at points. A shell is SHELL_FIELDS integers (kind, primitives, columns, first number), its primitives
// are records of an exponent and the coefficients of all columns.
#define AXES (GRADIENT ? 3 : 0)
#define VALUES (1 + AXES)

// Values of all functions of a shell, handed to `store(column, component, function, value)`.
template <class S>
FN void shell_values(const int* shell, const REAL* primitive, VEC x, VEC y, VEC z, const S& store) {
    const int count = shell[1], columns = shell[2];
    const REAL* record = primitive + shell[3];
    const VEC r2 = x * x + y * y + z * z;
    VEC R[MAX_COLUMNS], T[MAX_COLUMNS];
    for (int q = 0; q < columns; ++q) R[q] = T[q] = vset(0);
    NO_UNROLL for (int k = 0; k < count; ++k, record += 1 + columns) {
        const VEC e = vexp(r2 * -record[0]);
#if GRADIENT
        const VEC slope = e * (REAL(-2) * record[0]);
#endif
        for (int q = 0; q < columns; ++q) {
            R[q] = vfma(vset(record[1 + q]), e, R[q]);
#if GRADIENT
            T[q] = vfma(vset(record[1 + q]), slope, T[q]);
#endif
        }
    }
    for (int q = 0; q < columns; ++q)
        functions_of(shell[0], x, y, z, R[q], T[q], [&](int component, int m, VEC v) { store(q, component, m, v); });
}
