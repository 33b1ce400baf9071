// Records and coefficients of the products of the primitives u of one class and v of another, as bras of Coulomb integrals
// (kernels/abi.py). `coefficient`, for all contraction columns, contains the factor 2 pi^5/2 / p of Coulomb integrals and the
// exponential factor.
KERNEL(THREADS) ENTRY(PARAMETERS) {
    FOR_ITEMS(pair) {
        const INDEX k = u[pair], l = v[pair];
        const double alpha = a_exponent[k], beta = b_exponent[l], p = alpha + beta;
        const double R2 = pair_record(alpha, a_centre + 3 * k, beta, b_centre + 3 * l, 0, record + pair * RECORD);
        const double factor = PAIR_UNIT / p * vexp(-(alpha * beta / p) * R2);
        for (int i = 0; i < a_columns; ++i)
            for (int j = 0; j < b_columns; ++j)
                coefficient[(pair * a_columns + i) * b_columns + j] =
                    factor * a_coefficient[k * a_columns + i] * b_coefficient[l * b_columns + j];
    }
}
