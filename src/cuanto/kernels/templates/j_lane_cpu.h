// The J engine on the CPU: a bra is uniform, kets are SIMD lanes. The generated interact(), which precedes this text, adds
// R_(t+s) H_s of one vector of kets to acc[density][t]. Kets come in blocks of KETS lanes, each a record [field][lane].
// Sums in REAL are added to the double totals after CHUNK blocks.
extern "C" void ENTRY(PARAMETERS) {
    for (INDEX b = begin; b < end; ++b) {
        const REAL* bra = bra_record + b * GEOMETRY;
        double* total = out + b * WIDTH;
        for (int j = 0; j < WIDTH; ++j) total[j] = 0;
        for (INDEX first = ket_begin[b]; first < ket_end[b]; first += CHUNK) {
            const INDEX last = first + CHUNK < ket_end[b] ? first + CHUNK : ket_end[b];
            VEC acc[WIDTH];
            UNROLL for (int j = 0; j < WIDTH; ++j) acc[j] = VEC{};
            for (INDEX k = first; k < last; ++k) {
                const REAL* ket = ket_record + k * FIELDS * KETS;
                NO_UNROLL for (int lane = 0; lane < KETS; lane += LANES) interact(bra, ket + lane, boys_table, acc);
            }
            UNROLL for (int j = 0; j < WIDTH; ++j) total[j] += vsum(acc[j]);
        }
    }
}
