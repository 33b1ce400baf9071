// Elementary functions of functionals on vectors, accurate to a few ulp in the ranges that functionals use. The polynomials
// are Chebyshev fits with relative errors below 1e-16; single precision uses the same ones.
#if CUANTO_SINGLE
#define XC_MANTISSA 23
#define XC_BIAS 127
#define XC_ROOT_HALF UINT(0x3f3504f3u)  // bits of sqrt(1/2)
#define XC_LARGEST_EXPONENT REAL(88)
#else
#define XC_MANTISSA 52
#define XC_BIAS 1023
#define XC_ROOT_HALF UINT(0x3fe6a09e667f3bcdull)
#define XC_LARGEST_EXPONENT REAL(709)
#endif
#define XC_FRACTION ((UINT(1) << XC_MANTISSA) - 1)

template <int N>
FN VEC xc_polynomial(const REAL (&c)[N], VEC x) {
    VEC sum = vset(c[N - 1]);
    UNROLL for (int i = N - 2; i >= 0; --i) sum = vfma(sum, x, vset(c[i]));
    return sum;
}

// Convert small integers to floating point.
FN VEC xc_number(VBITS whole) {
    const UINT big = UINT(XC_BIAS + XC_MANTISSA) << XC_MANTISSA;  // 2^mantissa: whole numbers fill its lowest bits
    return reinterpret<VEC>(VBITS(whole | big)) - reinterpret<REAL>(big);
}

FN VEC xc_exp(VEC x) { return vexp(vselect(x < XC_LARGEST_EXPONENT, x, vset(XC_LARGEST_EXPONENT))); }

// x > 0: x = 2^k m with m from sqrt(1/2) to sqrt(2), ln m = 2 artanh((m - 1)/(m + 1)).
FN VEC xc_log(VEC x) {
    static const REAL c[] = {REAL(0.3333333333333333),  REAL(0.2000000000000044),  REAL(0.14285714285401807),
                             REAL(0.11111111195856958), REAL(0.09090897820066453), REAL(0.07693119851407329),
                             REAL(0.06634386569328443), REAL(0.06543313073920051)};
    const VBITS shifted = reinterpret<VBITS>(x) + ((UINT(XC_BIAS) << XC_MANTISSA) - XC_ROOT_HALF);
    const VEC k = xc_number(shifted >> XC_MANTISSA) - REAL(XC_BIAS);
    const VEC m = reinterpret<VEC>(VBITS((shifted & XC_FRACTION) + XC_ROOT_HALF));
    const VEC f = (m - REAL(1)) / (m + REAL(1));
    const VEC w = f * f;
    const VEC rest = REAL(2) * f * w * xc_polynomial(c, w);
#if CUANTO_SINGLE
    return k * REAL(0.693115234375) + (REAL(2) * f + (rest + k * REAL(3.1946184945309415e-05)));
#else
    return k * REAL(0.6931471803691238) + (REAL(2) * f + (rest + k * REAL(1.9082149292705877e-10)));
#endif
}

// The rounding error of 1 + x is corrected in first order.
FN VEC xc_log1p(VEC x) {
    const VEC u = x + REAL(1);
    return xc_log(u) + vselect(x < REAL(1e15), (x - (u - REAL(1))) / u, vset(0));
}

FN VEC xc_expm1(VEC x) {
    static const REAL c[] = {REAL(0.5),
                             REAL(0.16666666666666666),
                             REAL(0.04166666666666706),
                             REAL(0.00833333333333336),
                             REAL(0.001388888888870455),
                             REAL(0.00019841269841146993),
                             REAL(2.4801587616145414e-05),
                             REAL(2.755731943362024e-06),
                             REAL(2.7557076636642725e-07),
                             REAL(2.505194670972162e-08),
                             REAL(2.0962955815976076e-09),
                             REAL(1.6116496514371548e-10)};
    const VEC square = x * x;
    const VEC small = vselect(square < REAL(0.25), x, vset(0));
    return vselect(square < REAL(0.25), small + small * small * xc_polynomial(c, small), xc_exp(x) - REAL(1));
}

// x > 0, normal: x = 8^q z with z from 1 to 8; Newton's steps towards z^(-1/3) need no division.
FN VEC xc_cbrt(VEC x) {
    static const REAL c[] = {REAL(1.6662787377309156), REAL(-1.1623973573078166), REAL(0.6846527077322325),
                             REAL(-0.21636185469244387), REAL(0.02778280101858424)};
    const VBITS bits = reinterpret<VBITS>(x);
    const VEC k = xc_number(bits >> XC_MANTISSA) - REAL(XC_BIAS);
    const VEC m = reinterpret<VEC>(VBITS((bits & XC_FRACTION) | (UINT(XC_BIAS) << XC_MANTISSA)));
    const VEC q = vround((k - REAL(1)) * REAL(0.3333333333333333));
    const VEC r = k - REAL(3) * q;  // 0, 1 or 2
    const MASK one = r > REAL(0.5), two = r > REAL(1.5);
    const VEC z = m * vselect(two, vset(4), vselect(one, vset(2), vset(1)));
    VEC y = xc_polynomial(c, m) *
            vselect(two, vset(REAL(0.6299605249474366)), vselect(one, vset(REAL(0.7937005259840998)), vset(1)));
    UNROLL for (int i = 0; i < 2; ++i) y = vfma(y * REAL(0.3333333333333333), vfma(-z * y, y * y, vset(1)), y);
    VEC root = z * y * y;
    root = vfma(y * y * REAL(0.3333333333333333), vfma(-root * root, root, z), root);
    const VBITS power = reinterpret<VBITS>(VEC(q + (REAL(XC_BIAS) + CUANTO_ROUNDER))) << XC_MANTISSA;
    return root * reinterpret<VEC>(power);
}

// x >= 0: reduced to |z| <= tan(pi/8) by atan x = pi/4 + atan((x - 1)/(x + 1)) = pi/2 - atan(1/x).
FN VEC xc_atan(VEC x) {
    static const REAL c[] = {REAL(-0.3333333333333333),  REAL(0.1999999999999552),   REAL(-0.14285714284666542),
                             REAL(0.11111111015256361),  REAL(-0.09090904578123903), REAL(0.07692183190826087),
                             REAL(-0.06664511447381948), REAL(0.0585814891280221),   REAL(-0.0508544973794026),
                             REAL(0.03923165829558719),  REAL(-0.01917688711906226)};
    const MASK middle = x > REAL(0.41421356237309503), high = x > REAL(2.414213562373095);
    const VEC above = vselect(high, vset(-1), vselect(middle, x - REAL(1), x));
    const VEC below = vselect(high, x, vselect(middle, x + REAL(1), vset(1)));
    const VEC base = vselect(high, vset(REAL(1.5707963267948966)), vselect(middle, vset(REAL(0.7853981633974483)), vset(0)));
    const VEC z = above / below;
    const VEC w = z * z;
    return base + vfma(z * w, xc_polynomial(c, w), z);
}

// x >= 0: a polynomial below 1, above 1 - exp(-x^2) times a polynomial in (x - 2)/(x + 2); beyond 6 it is 1.
FN VEC xc_erf(VEC x) {
    static const REAL low[] = {REAL(1.1283791670955126),     REAL(-0.37612638903183543),  REAL(0.11283791670945006),
                               REAL(-0.02686617064323777),   REAL(0.0052239776071164225), REAL(-0.0008548325975389692),
                               REAL(0.00012055294904839707), REAL(-1.492473690741966e-05), REAL(1.6447424703317362e-06),
                               REAL(-1.6208483801871705e-07), REAL(1.3720064546777686e-08), REAL(-7.795898827002142e-10)};
    static const REAL high[] = {REAL(0.2553956763105057),     REAL(-0.4271858474139585),    REAL(0.24165819424248763),
                                REAL(-0.07897858101571269),   REAL(0.0037328924016564484),  REAL(0.006997461739200575),
                                REAL(-0.0008471431229415333), REAL(-0.0009819771114740715), REAL(4.355265359817883e-05),
                                REAL(0.00017436477257256738), REAL(2.7560352756678313e-05), REAL(-2.7640727821912852e-05),
                                REAL(-1.4166339069117108e-05), REAL(1.859427387429402e-06), REAL(4.146302183268488e-06),
                                REAL(-2.22812957637235e-07)};
    const VEC small = vselect(x < REAL(1), x, vset(1));
    const VEC large = vselect(x < REAL(6), x, vset(6));
    const VEC tail = vexp(-(large * large)) * xc_polynomial(high, (large - REAL(2)) / (large + REAL(2)));
    return vselect(x < REAL(1), small * xc_polynomial(low, small * small), REAL(1) - tail);
}
