// Number types of the NDDO kernels: plain numbers, and dual numbers, with which the same texts give gradients.
template <class V> FN V number(REAL x);
#if LANES > 1
template <> FN_MEMBER VEC number<VEC>(REAL x) { return vset(x); }
#else
template <> FN_MEMBER REAL number<REAL>(REAL x) { return x; }
#endif

struct Dual {
    VEC v, d;
};
template <> FN_MEMBER Dual number<Dual>(REAL x) { return Dual{vset(x), vset(0)}; }

FN Dual operator+(Dual a, Dual b) { return Dual{a.v + b.v, a.d + b.d}; }
FN Dual operator-(Dual a, Dual b) { return Dual{a.v - b.v, a.d - b.d}; }
FN Dual operator*(Dual a, Dual b) { return Dual{a.v * b.v, a.d * b.v + a.v * b.d}; }
FN Dual operator+(Dual a, VEC b) { return Dual{a.v + b, a.d}; }
FN Dual operator-(Dual a, VEC b) { return Dual{a.v - b, a.d}; }
FN Dual operator*(Dual a, VEC b) { return Dual{a.v * b, a.d * b}; }
FN Dual operator*(VEC a, Dual b) { return Dual{a * b.v, a * b.d}; }
#if LANES > 1
FN Dual operator+(Dual a, REAL b) { return Dual{a.v + b, a.d}; }
FN Dual operator-(Dual a, REAL b) { return Dual{a.v - b, a.d}; }
FN Dual operator*(Dual a, REAL b) { return Dual{a.v * b, a.d * b}; }
FN Dual operator*(REAL a, Dual b) { return Dual{a * b.v, a * b.d}; }
FN Dual operator+(REAL a, Dual b) { return b + a; }
#else
FN Dual operator+(VEC a, Dual b) { return b + a; }
#endif

FN VEC value_of(VEC x) { return x; }
FN VEC value_of(Dual x) { return x.v; }
FN VEC inverse(VEC x) { return vrcp(x); }
FN Dual inverse(Dual x) {
    const VEC y = vrcp(x.v);
    return Dual{y, -(x.d * y * y)};
}
FN VEC exponential(VEC x) { return vexp(x); }
FN Dual exponential(Dual x) {
    const VEC y = vexp(x.v);
    return Dual{y, x.d * y};
}
FN VEC inverse_root(VEC x) { return vrsqrt(x); }
FN Dual inverse_root(Dual x) {
    const VEC y = vrsqrt(x.v);
    return Dual{y, REAL(-0.5) * x.d * y * y * y};
}
FN VEC choose(MASK where, VEC yes, VEC no) { return vselect(where, yes, no); }
FN Dual choose(MASK where, Dual yes, Dual no) { return Dual{vselect(where, yes.v, no.v), vselect(where, yes.d, no.d)}; }
template <class V> FN V keep_where(MASK where, V x) { return choose(where, x, number<V>(0)); }
FN VEC smaller(VEC x, VEC y) { return vselect(x < y, x, y); }
FN VEC magnitude(VEC x) { return vselect(x < REAL(0), -x, x); }

template <class V> FN V inverse_distance(V along, VEC across) { return inverse_root(along * along + across); }

// Inverse distance of two charges; all integrals are sums of it. With `slope`: its derivative along the bond.
FN VEC of_charges(VEC along, VEC across, bool slope) {
    const VEC t = vrsqrt(along * along + across);
    return slope ? -(along * t * t * t) : t;
}
