// Any class of integrals from index tables: a list of (bra, first of LANES kets), results one item after the other.

struct Keep {
    VEC* out;  // of this pass
    int ket_functions;
    void operator()(const int* pc, const VEC* value) const { out[pc[3] * ket_functions + pc[4]] = *value; }
};

KERNEL(1) ENTRY(PARAMETERS) {
    const Sides x = SIDES;
    const Tables t = TABLES;
    TableWork<1> work(x, t);
    const int ket_functions = work.sweeps[1].repeat();
    VEC* target = (VEC*)out;
    for (INDEX item = 0; item < count; ++item) {
        const INDEX b = list[2 * item], ket = list[2 * item + 1];
        work.sums(b, ket);
        for (INDEX q = 0; q < x.columns; ++q, target += t.bra_functions * ket_functions)
            work.finish(b, ket, q, [&](INDEX pass) { return Keep{target + pass, ket_functions}; });
    }
}
