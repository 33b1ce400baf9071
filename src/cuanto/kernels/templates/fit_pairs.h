// Records and coefficients of pairs (u, v) of primitives, u of one class and v of another or the same (`same`).
//
// With a `smearing` integrals have the factor `bra_coefficient`. `coefficient`, for all contraction columns, contains the
// factor 2 pi^5/2 / p of Coulomb integrals, the exponential factor, and 2 for the pair (v, u) of two different segments.
// `a_place`, `b_place`: first functions of the two segments, which have `rows` functions each in the first class and
// `columns` in the second.
KERNEL(THREADS) ENTRY(PARAMETERS) {
    FOR_ITEMS(pair) {
        const INDEX k = u[pair], l = v[pair];
        const double alpha = a_exponent[k], beta = b_exponent[l], p = alpha + beta;
        double* field = record + pair * RECORD;
        const double R2 = pair_record(alpha, a_centre + 3 * k, beta, b_centre + 3 * l, smearing, field);
        a_place[pair] = a_owner[k] * rows;
        b_place[pair] = b_owner[l] * columns;
        bra_coefficient[pair] = vsqrt(field[0] / p);
        const double order = same && a_owner[k] == b_owner[l] ? 1 : 2;
        const double factor = order * PAIR_UNIT / p * vexp(-(alpha * beta / p) * R2);
        for (int i = 0; i < a_columns; ++i)
            for (int j = 0; j < b_columns; ++j)
                coefficient[(pair * a_columns + i) * b_columns + j] =
                    factor * a_coefficient[k * a_columns + i] * b_coefficient[l * b_columns + j];
    }
}
