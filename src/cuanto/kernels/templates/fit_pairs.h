// Records and coefficients of pairs (u, v) of primitives, u of one class and v of another or the same (`same`).
//
// The fields of a `record` are in kernels/abi.py. For an operator attenuated by `smearing` = 1/omega^2 the exponent differs,
// and integrals have the factor `bra_coefficient` (integrals/attenuation.py). `coefficient`, for all contraction columns,
// contains the factor 2 pi^5/2 / p of Coulomb integrals, the exponential factor, and 2 for the pair (v, u) of two different
// segments. `a_place`, `b_place`: first functions of the two segments, which have `rows` functions each in the first class
// and `columns` in the second.
#define FIT_UNIT 34.986836655249724  // 2 pi^5/2

KERNEL(THREADS) ENTRY(PARAMETERS) {
    FOR_ITEMS(pair) {
        const INDEX k = u[pair], l = v[pair];
        const double alpha = a_exponent[k], beta = b_exponent[l], p = alpha + beta;
        double *field = record + pair * RECORD, R2 = 0;
        field[0] = p / (1 + smearing * p);
        field[10] = 0.5 / p;
        field[14] = 0;
        for (int x = 0; x < 3; ++x) {
            const double A = a_centre[3 * k + x], B = b_centre[3 * l + x], AB = A - B;
            const double PA = -(beta / p) * AB, PB = alpha / p * AB;
            const double start = alpha >= beta ? A : B, step = alpha >= beta ? PA : PB;
            const double P = start + step, shift = P - start;
            field[1 + x] = P;
            field[4 + x] = PA;
            field[7 + x] = PB;
            field[11 + x] = (start - (P - shift)) + (step - shift);  // rounding error of P (Knuth)
            R2 += AB * AB;
        }
        a_place[pair] = a_owner[k] * rows;
        b_place[pair] = b_owner[l] * columns;
        bra_coefficient[pair] = vsqrt(field[0] / p);
        const double order = same && a_owner[k] == b_owner[l] ? 1 : 2;
        const double factor = order * FIT_UNIT / p * vexp(-(alpha * beta / p) * R2);
        for (int i = 0; i < a_columns; ++i)
            for (int j = 0; j < b_columns; ++j)
                coefficient[(pair * a_columns + i) * b_columns + j] =
                    factor * a_coefficient[k * a_columns + i] * b_coefficient[l * b_columns + j];
    }
}
