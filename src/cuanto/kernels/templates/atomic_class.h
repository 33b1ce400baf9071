// Integrals of two pairs of functions of an atom: p, q of one symmetry (a row) and r, s of another (a column, one per
// lane or thread). kernels/atomic.py builds and documents the tables.
//
// Record of a pair p, q: exponents z_p, z_q; second terms v_p, v_q of the small functions r^n (1 - v r^2); norms
// L_p L_q, S_p S_q, L_p S_q, S_p L_q. All direct and exchange integrals of (pq|rs) share z_p + z_q + z_r + z_s.
#define ROW_TERMS (1 + 2 * ROW_TWO)
#define COLUMN_TERMS (1 + 2 * COLUMN_TWO)
#define MIXED_TERMS (1 + ROW_TWO + COLUMN_TWO)

enum { J_LL, J_SS, J_LS, J_SL, K_LL, K_SS, K_LS, TABLES_OF_A_CLASS };
enum { N_LL, N_SS, N_LS, N_SL, N_K };

struct Values {
    VEC LL, SS, LS, SL, K[4];
};

// Ratios of the exponents A, B of two distributions.
struct Ratio {
    VEC up, down, per_A, per_B;  // B/A, A/B, 1/A, 1/B
};

FN Ratio ratio(VEC A, VEC B) {
    const VEC both = vrcp(A * B);
    Ratio x;
    x.per_A = B * both;
    x.per_B = A * both;
    x.up = B * x.per_A;
    x.down = A * x.per_B;
    return x;
}

FN Ratio swapped(Ratio x) {
    Ratio y;
    y.up = x.down;
    y.down = x.up;
    y.per_A = x.per_B;
    y.per_B = x.per_A;
    return y;
}

// c = sum_ij A_i B_j c^ij with A_0 = B_0 = 1
template <int I, int J>
FN VEC mixed(const REAL* c, const VEC* A, const VEC* B) {
    VEC sum = vset(0);
    UNROLL for (int i = 0; i < I; ++i) {
        VEC inner = vset(c[i * J]);
        UNROLL for (int j = 1; j < J; ++j) inner = vfma(c[i * J + j], B[j], inner);
        sum = i == 0 ? inner : vfma(inner, A[i], sum);
    }
    return sum;
}

// Coulomb interaction of two distributions: a polynomial in A/B, over B, plus one in B/A, over A. `table` has their
// coefficients, `shape` the numbers of coefficients and the position of the first one.
template <int I, int J>
FN VEC repel(const int* shape, const REAL* table, Ratio x, const VEC* A, const VEC* B) {
    const REAL* c = table + shape[2];
    VEC lower = mixed<I, J>(c, A, B);
    NO_UNROLL for (int n = 1; n < shape[0]; ++n) lower = vfma(lower, x.down, mixed<I, J>(c += I * J, A, B));
    VEC upper = mixed<I, J>(c += I * J, A, B);
    NO_UNROLL for (int n = 1; n < shape[1]; ++n) upper = vfma(upper, x.up, mixed<I, J>(c += I * J, A, B));
    return vfma(lower, x.per_B, upper * x.per_A);
}

// The same for two pairs of distributions at once, whose chains of dependent operations overlap.
template <int I, int J>
FN void repel_two(
    const int* shape, const REAL* table, Ratio x, const VEC* A, const VEC* B, Ratio y, const VEC* C, const VEC* D, VEC* out) {
    const REAL* c = table + shape[2];
    VEC one = mixed<I, J>(c, A, B), two = mixed<I, J>(c, C, D);
    NO_UNROLL for (int n = 1; n < shape[0]; ++n) {
        c += I * J;
        one = vfma(one, x.down, mixed<I, J>(c, A, B));
        two = vfma(two, y.down, mixed<I, J>(c, C, D));
    }
    out[0] = one * x.per_B;
    out[1] = two * y.per_B;
    c += I * J;
    one = mixed<I, J>(c, A, B);
    two = mixed<I, J>(c, C, D);
    NO_UNROLL for (int n = 1; n < shape[1]; ++n) {
        c += I * J;
        one = vfma(one, x.up, mixed<I, J>(c, A, B));
        two = vfma(two, y.up, mixed<I, J>(c, C, D));
    }
    out[0] = vfma(one, x.per_A, out[0]);
    out[1] = vfma(two, y.per_A, out[1]);
}

FN VEC to_power(VEC x, int n, VEC start) {
    NO_UNROLL for (; n > 1; n >>= 1) {
        if (n & 1) start = start * x;
        x = x * x;
    }
    return n ? start * x : start;
}

// Terms of a product of two small functions, (1 - v r^2)(1 - w r^2), over powers of z_p + z_q + z_r + z_s.
template <int TERMS>
FN void terms(VEC v, VEC w, VEC per_total, VEC* A) {
    A[0] = vset(1);
    if (TERMS == 2) A[1] = -(v + w) * per_total;  // one of them is zero
    if (TERMS == 3) {
        A[1] = -(v + w) * per_total;
        A[2] = (v * per_total) * (w * per_total);
    }
}

FN void integrals_of(const REAL* row, const VEC* column, VEC weight, const int* shape, const REAL* table, Values* X) {
    const VEC zp = vset(row[0]), zq = vset(row[1]), zr = column[0], zs = column[1];
    const VEC total = (zp + zq) + (zr + zs);
    const VEC root = vrsqrt(total);
    const VEC per_total = root * root;
    const int* power = shape + 3 * TABLES_OF_A_CLASS;
    const Ratio direct = ratio(zp + zq, zr + zs);
    const Ratio first = ratio(zp + zr, zq + zs), second = ratio(zp + zs, zq + zr);
    const VEC start = root * weight;
    VEC K[2];
    const VEC one[1] = {vset(1)};

    VEC J = repel<1, 1>(shape + 3 * J_LL, table, direct, one, one);
    repel_two<1, 1>(shape + 3 * K_LL, table, first, one, one, second, one, one, K);
    X->LL = vfma(K[0] + K[1], vset(REAL(-0.5)), J) * (to_power(per_total, power[N_LL], start) * row[4] * column[4]);
#if RELATIVISTIC
    const VEC vp = vset(row[2]), vq = vset(row[3]), vr = column[2], vs = column[3];
    VEC pq[ROW_TERMS], rs[COLUMN_TERMS], pr[MIXED_TERMS], qs[MIXED_TERMS], ps[MIXED_TERMS], qr[MIXED_TERMS];
    terms<ROW_TERMS>(vp, vq, per_total, pq);
    terms<COLUMN_TERMS>(vr, vs, per_total, rs);
    terms<MIXED_TERMS>(vp, vr, per_total, pr);
    terms<MIXED_TERMS>(vq, vs, per_total, qs);
    terms<MIXED_TERMS>(vp, vs, per_total, ps);
    terms<MIXED_TERMS>(vq, vr, per_total, qr);

    J = repel<ROW_TERMS, COLUMN_TERMS>(shape + 3 * J_SS, table, direct, pq, rs);
    repel_two<MIXED_TERMS, MIXED_TERMS>(shape + 3 * K_SS, table, first, pr, qs, second, ps, qr, K);
    X->SS = vfma(K[0] + K[1], vset(REAL(-0.5)), J) * (to_power(per_total, power[N_SS], start) * row[5] * column[5]);

    J = repel<1, COLUMN_TERMS>(shape + 3 * J_LS, table, direct, one, rs);
    X->LS = J * (to_power(per_total, power[N_LS], start) * row[4] * column[5]);
    J = repel<ROW_TERMS, 1>(shape + 3 * J_SL, table, direct, pq, one);
    X->SL = J * (to_power(per_total, power[N_SL], start) * row[5] * column[4]);

    // Exchange of large and small functions, with its minus sign: (pq, rs), (pq, sr), (qp, rs), (qp, sr), where the first
    // function of each pair is large and the second small
    const VEC minus = -to_power(per_total, power[N_K], start);
    const VEC LS = minus * row[6], SL = minus * row[7];
    repel_two<1, MIXED_TERMS>(shape + 3 * K_LS, table, first, one, qs, second, one, qr, K);
    X->K[0] = K[0] * (LS * column[6]);
    X->K[1] = K[1] * (LS * column[7]);
    repel_two<1, MIXED_TERMS>(shape + 3 * K_LS, table, swapped(second), one, ps, swapped(first), one, pr, K);
    X->K[2] = K[0] * (SL * column[6]);
    X->K[3] = K[1] * (SL * column[7]);
#endif
}
