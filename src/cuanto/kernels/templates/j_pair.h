// Pairs of primitives: records of a pair, and the expansion of its products in Hermite Gaussians along each axis.
//
// A function of a primitive is a polynomial: terms start[m] .. start[m + 1] of function m have a `value` and three `power`s.
//
// A Hermite density h of exponent p has sqrt (h|h) = J_SELF_REPULSION p^-5/4 |W^T g|, g_t = p^(|t|/2) h_t
// (`self_repulsion_factor`); interactions are computed in units of J_UNIT p^-3/2 q^-3/2.
#define J_SELF_REPULSION 4.97387469194723
#define J_UNIT 17.493418327624862  // pi^5/2

struct Polynomials {
    const int* start;
    const int* power;
    const double* value;
};

struct Pair {
    double alpha, beta, p, A[3], B[3];
};

FN Pair j_pair(const double* a_exponent, const double* a_centre, INDEX a, const double* b_exponent, const double* b_centre,
               INDEX b) {
    Pair pair;
    pair.alpha = a_exponent[a];
    pair.beta = b_exponent[b];
    pair.p = pair.alpha + pair.beta;
    for (int x = 0; x < 3; ++x) {
        pair.A[x] = a_centre[3 * a + x];
        pair.B[x] = b_centre[3 * b + x];
    }
    return pair;
}

// E[axis][i][j][t] of x_A^i x_B^j exp(-alpha x_A^2 - beta x_B^2) for i < is, j < js, in the memory of a team.
struct Expansion {
    double* E;
    int js, ts, size;
    FN_MEMBER const double* row(int x, int i, int j) const { return E + x * size + (i * js + j) * ts; }
};

// Eqs. 9.5.6 and 9.5.7 of Helgaker, Jorgensen and Olsen, from i - 1 or, where i is zero, from j - 1.
FN Expansion j_axes(double* memory, const Pair& pair, int is, int js) {
    const int ts = is + js - 1;
    const Expansion found = {memory, js, ts, is * js * ts};
    const double half = 0.5 / pair.p;
    FOR_MEMBERS(x, 0, 3) {
        const double AB = pair.A[x] - pair.B[x];
        for (int n = 0; n < is * js; ++n) {
            double* here = memory + x * found.size + n * ts;
            if (n == 0) {
                for (int t = 0; t < ts; ++t) here[t] = 0;
                here[0] = vexp(-pair.alpha * pair.beta / pair.p * AB * AB);
                continue;
            }
            const bool first = n >= js;
            const double* low = here - (first ? js * ts : ts);
            const double X = (first ? -pair.beta : pair.alpha) / pair.p * AB;
            for (int t = 0; t < ts; ++t) {
                double sum = X * low[t];
                if (t > 0) sum = vfma(half, low[t - 1], sum);
                if (t + 1 < ts) sum = vfma(double(t + 1), low[t + 1], sum);
                here[t] = sum;
            }
        }
    }
    BARRIER;
    return found;
}

// The first element of the densities of pair (u, v), `rows` times `columns` functions, in a matrix with `row` elements in a
// row; `origin` is the element of the first pair.
FN INDEX j_place(INDEX origin, INDEX row, int rows, int columns, INDEX u, INDEX v) {
    return origin + rows * u * row + columns * v;
}
