// Hermite expansions of the products of two contracted shells, one pair of primitives per item, and their derivatives with
// respect to A - B at fixed P (eqs. 9.5.6 and 9.5.7 of Helgaker, Jorgensen and Olsen):
//   E[pair][function of a][function of b][t][4]: E_t, and dE_t/d(A - B) along three axes, times the coefficient;
//   share[pair]: alpha / p, the fraction of a displacement of A by which P moves (zero, unused, for a pair on one
// centre).
// A function is a polynomial: terms start[m] .. start[m + 1] of function m have a `value` and three `power`s.
struct FitAxes {  // E[axis][i][j][t] and its derivatives
    double *E, *slope;
    int js, ts, size;
    FN_MEMBER int place(int x, int i, int j) const { return x * size + (i * js + j) * ts; }
};

FN FitAxes fit_axes(double* memory, const double* pair, int la, int lb, double* share) {
    const int js = lb + 1, ts = la + lb + 1, size = (la + 1) * js * ts;
    const FitAxes axes = {memory, memory + 3 * size, js, ts, size};
    const double *PA = pair + 4, *PB = pair + 7, half = pair[10];
    double R2 = 0, on_A = 0, on_B = 0;
    for (int x = 0; x < 3; ++x) {
        const double AB = PB[x] - PA[x];
        R2 += AB * AB, on_A += PB[x] * AB, on_B -= PA[x] * AB;
    }
    const double a = R2 > 0 ? on_A / R2 : 0, b = R2 > 0 ? on_B / R2 : 0;  // alpha / p and beta / p
    FOR_MEMBERS(x, 0, 3) {
        for (int n = 0; n < (la + 1) * js; ++n) {
            double *E = axes.E + x * size + n * ts, *slope = axes.slope + x * size + n * ts;
            if (n == 0) {
                for (int t = 0; t < ts; ++t) E[t] = slope[t] = 0;
                E[0] = 1;  // the exponential is part of the coefficient
                slope[0] = -a * b / half * (PB[x] - PA[x]);  // -2 alpha beta / p (A - B)
                continue;
            }
            const bool first = n >= js;
            const int step = first ? js * ts : ts;
            const double *low = E - step, *low_slope = slope - step;
            const double X = first ? PA[x] : PB[x], dX = first ? -b : a;
            for (int t = 0; t < ts; ++t) {
                double value = X * low[t], change = X * low_slope[t] + dX * low[t];
                if (t > 0) value += half * low[t - 1], change += half * low_slope[t - 1];
                if (t + 1 < ts) value += (t + 1) * low[t + 1], change += (t + 1) * low_slope[t + 1];
                E[t] = value, slope[t] = change;
            }
        }
    }
    if (FIRST_MEMBER) *share = a;
    BARRIER;
    return axes;
}

KERNEL(THREADS) ENTRY(PARAMETERS) {
    SCRATCH
    const int rows = a_columns * a_functions, columns = b_columns * b_functions;
    FOR_TEAMS(pair) {
        const FitAxes axes = fit_axes(scratch, record + pair * RECORD, la, lb, share + pair);
        const double* factor = coefficient + pair * a_columns * b_columns;
        double* out = E + pair * rows * columns * tuples * 4;
        FOR_MEMBERS(w, 0, (INDEX)a_functions * b_functions * tuples) {
            const int t = int(w % tuples), n = int(w / tuples % b_functions), m = int(w / tuples / b_functions);
            const int* tuple = table + 8 * t;
            double made[4] = {0, 0, 0, 0};
            for (int i = a_start[m]; i < a_start[m + 1]; ++i)
                for (int j = b_start[n]; j < b_start[n + 1]; ++j) {
                    double value[3], slope[3];
                    for (int x = 0; x < 3; ++x) {
                        const int place = axes.place(x, a_power[3 * i + x], b_power[3 * j + x]) + tuple[x];
                        value[x] = axes.E[place], slope[x] = axes.slope[place];
                    }
                    const double weight = a_value[i] * b_value[j] * tuple[3];
                    made[0] += weight * value[0] * value[1] * value[2];
                    made[1] += weight * slope[0] * value[1] * value[2];
                    made[2] += weight * value[0] * slope[1] * value[2];
                    made[3] += weight * value[0] * value[1] * slope[2];
                }
            for (int ca = 0; ca < a_columns; ++ca)
                for (int cb = 0; cb < b_columns; ++cb) {
                    const INDEX f = (INDEX)(ca * a_functions + m) * columns + cb * b_functions + n;
                    for (int c = 0; c < 4; ++c) out[(f * tuples + t) * 4 + c] = factor[ca * b_columns + cb] * made[c];
                }
        }
        BARRIER;
    }
}
