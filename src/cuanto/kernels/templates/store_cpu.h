// Keeps the integrals of the quartets that matter for any density of elements up to one, in the order in which
// `stored_cpu.h` takes them: for every vector of kets and class of bras a count and the numbers of the bras in `head`,
// and [bra, column, function a, b, c, d, lane] in `value`, with the weights included. Without `head` it only counts.
struct Store {
    int* head;
    REAL* value;
    INDEX heads, values, limit;  // limit: values at which counting may stop
};

extern "C" void ENTRY(PARAMETERS) {
    const Densities& x = *(const Densities*)densities;
    const KetClass& k = *(const KetClass*)kets;
    const BraClass* bra = (const BraClass*)bras;
    Store& s = *(Store*)store;
    Work w = workspace(x, k, bra, classes);
    const double largest = largest_density(x);
    for (INDEX first = begin * LANES; first < k.kets && s.values <= s.limit; first += step * LANES) {
        gather(x, k, first, w.kets);
        for (INDEX i = 0; i < classes; ++i) {
            const INDEX place = s.heads++, size = bra[i].columns * bra[i].na * bra[i].nb * k.nc * k.nd;
            *quartets += all_bras(x, bra[i], largest, first, w, [&](INDEX count) {
                if (s.head) {
                    VEC* integrals = (VEC*)(s.value + s.values);
                    bra[i].kernel(bra[i].sides, bra[i].tables, w.list, count, (REAL*)integrals);
                    for (INDEX item = 0; item < count; ++item) {
                        s.head[s.heads + item] = w.list[2 * item];
                        const VEC weight = __builtin_convertvector(w.weights[item], VEC);
                        for (INDEX e = 0; e < size; ++e) *integrals++ *= weight;
                    }
                }
                s.heads += count, s.values += count * size * LANES;
            });
            if (s.head) s.head[place] = (int)(s.heads - place - 1);
        }
    }
}
