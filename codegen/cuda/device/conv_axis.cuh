
/* One axis of a pass: result place first + i * step for i < count reads source places origin + i *
 * source_step + t * tap_step for its taps t, with kernel place weight_first + t * weight_step. */
typedef struct Axis {
    int count, first, step, origin, source_step, taps, tap_step, weight_first, weight_step;
} Axis;
