// Interaction of the products on A with a unit charge at B that has the additive term of B's core, less that with B's ss product;
// 0 for an atom and itself. With `slope`: derivatives along the bond.
FN void core_difference(const Pair& x, bool slope, VEC* w) {
    VEC a[FIELDS], b[FIELDS], usual[VALUES];
    UNROLL_REGISTERS for (int field = 0; field < FIELDS; ++field) {
        a[field] = x.a[field];
        b[field] = x.b[field];
    }
    a[RHO_SP] = a[RHO_SP_CORE];
    a[RHO_PP] = a[RHO_PP_CORE];
    b[RHO_0] = b[RHO_CORE];
    local_repulsion(x.R, a, b, slope, w);
    local_repulsion(x.R, x.a, x.b, slope, usual);
    UNROLL_REGISTERS for (int k = 0; k < VALUES; ++k) {  // k = 0: ss
        const VEC with = k == 0 ? w[k] : x.a[ATTRACTED] * w[k];
        w[k] = vselect(x.R > REAL(0), with - usual[k], vset(0));
    }
}
