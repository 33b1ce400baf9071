#define PAIR_UNIT 34.986836655249724  // 2 pi^5/2

// The fields of a record (kernels/abi.py) of the product of two primitives with exponents alpha at A and beta at B; returns
// the squared distance. For an operator attenuated by `smearing` = 1/omega^2 the exponent differs
// (integrals/attenuation.py).
FN double pair_record(double alpha, const double* A, double beta, const double* B, double smearing, double* field) {
    const double p = alpha + beta;
    double R2 = 0;
    field[0] = p / (1 + smearing * p);
    field[10] = 0.5 / p;
    field[14] = 0;
    for (int x = 0; x < 3; ++x) {
        const double AB = A[x] - B[x], PA = -(beta / p) * AB, PB = alpha / p * AB;
        const double start = alpha >= beta ? A[x] : B[x], step = alpha >= beta ? PA : PB;
        const double P = start + step, shift = P - start;
        field[1 + x] = P;
        field[4 + x] = PA;
        field[7 + x] = PB;
        field[11 + x] = (start - (P - shift)) + (step - shift);  // rounding error of P (Knuth)
        R2 += AB * AB;
    }
    return R2;
}
