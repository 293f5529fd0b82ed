/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of verbs and the table of options. */
#include "frontend/driver/cli_options.h"

#include <stddef.h>

/* What verbs that plan, and verbs that make machine code, have in common. */
#define PLAN_OPTIONS                                                                               \
    "budget solver effort objective cost no-masks no-views no-norms no-attention no-chunks "
#define BUILD_OPTIONS "device exact fast march cache no-cache no-tuning no-strips jobs "

// clang-format off
const Verb cli_verbs[] = {
    {"check", "parse and check a model file",
     "Reports every error it finds, with its place and a way out.",
     "define model error-format",
     verb_check, false},
    {"summary", "parameters, shapes, multiply-adds and bytes of a model",
     "Counts are for the batch size of option N (override with -D N=...). A loop (scan) is one\n"
     "operation, with the elements of its results; multiply-adds are those of all its steps.\n"
     "--count describes the forward pass of training at the granularity of a paper: its vertices,\n"
     "edges and elements; with --out it is written as a graph for `plan --graph`.",
     "define model count out json error-format",
     verb_summary, false},
    {"dump", "print a stage of the compilation",
     "Stages: ast, ir (forward graph), grad (whole step), remat, plan, code, asm.\n"
     "--diff A..B prints what changed between two of ir, grad, remat and plan. --stage=grad --json\n"
     "prints the step as a graph for `plan --graph`: operations not fused, in the order in which\n"
     "differentiation leaves them.\n"
     "grad, remat and plan begin with a comment: the `scrimp opt` line that makes the same of the\n"
     "output of --stage=ir (--dot, --json, --diff and --dump-after have none). --print-after-all\n"
     "prints every graph up to the stage (default: plan), or that a pass left it unchanged;\n"
     "--dump-after PASS is for a pass that runs up to the stage, and `all`.",
     "define model stage diff dump-after print-after-all no-loc dot json " PLAN_OPTIONS "device exact fast march error-format",
     verb_dump, false},
    {"opt", "run passes over IR text",
     "Reads IR text from FILE (or - for standard input) and writes IR text. PASSES is a list such as\n"
     "'autodiff,remat(budget=40%,solver=chen),plan'. remat takes budget, solver, objective, cost and\n"
     "effort, as `plan` does, and views=no, which copies pieces as --no-views does.\n"
     "`scrimp dump` names the PASSES that make the same of the output of --stage=ir.",
     "passes no-loc dump-after error-format",
     verb_opt, false},
    {"plan", "memory plan and recomputation under a budget",
     "BUDGET is bytes (8GiB), a percentage (40%: the persistent bytes plus 40% of what the step needs\n"
     "beyond them), or min. A part can be less than any plan takes; the message then says which works.\n"
     "--compare runs every solver but the Checkmate ones, --sweep N gives N budgets from the\n"
     "minimum to everything kept.\n"
     "`scrimp plan --graph FILE.json` plans a graph from elsewhere (format scrimp.graph.1,\n"
     "docs/graphs.md; - reads standard input):\n"
     "  {\"format\": \"scrimp.graph.1\", \"kind\": \"forward\", \"nodes\": [\n"
     "   {\"name\": \"x\",    \"time\": 0, \"inputs\": [],      \"outputs\": [{\"bytes\": 4096}]},\n"
     "   {\"name\": \"conv\", \"time\": 9, \"inputs\": [[0,0]], \"outputs\": [{\"bytes\": 8192}]}]}\n"
     "An input is [node, output]. A forward graph gets its backward part from scrimp; a graph of\n"
     "kind step holds the whole step. With --schedule the answer lists the nodes to run, in order.\n"
     "Answers do not depend on the clock unless --time-limit is given.\n"
     "--count RULE runs the papers' algorithms on the forward pass as a paper counts it (see\n"
     "summary --count), under the papers' own models of memory and time. --max-batch looks for the\n"
     "largest batch (option N) whose step fits --budget, by doubling and bisection. What is tried is\n"
     "shown on standard error: a line that a terminal redraws, else a line every ten seconds at most.\n"
     "--arena-csv writes a row for every buffer of the arena, but not the persistent tensors, in\n"
     "the form that `scrimp arena` reads. --svg draws the plan: bytes in memory over the operations\n"
     "of the step, with everything kept and as planned, and the arena, a rectangle a buffer.\n"
     "--peak prints what is in memory when most is, with the largest tensors of each part, and what\n"
     "would have to shrink for a peak that is 10% lower. --why %conv1~1 says why the operation that\n"
     "makes %conv1 runs again, what that frees and costs, and what would be without it; `dump\n"
     "--stage=remat` has the names, which --json and reports have, too.",
     "define model count graph " PLAN_OPTIONS "max-batch stop-at schedule seed time-limit compare sweep peak why arena-csv svg quiet "
     "threads " BUILD_OPTIONS "json error-format",
     verb_plan, false},
    {"report", "a page that shows a plan",
     "Writes one HTML file that shows what a plan does and why: memory over the step before and after\n"
     "recomputation, what lives at the peak, the arena, budgets against time, a row for every\n"
     "recomputation with what would happen without it, the model's text with what each line takes,\n"
     "and the IR. It opens from disk and loads nothing. The frontier has --frontier budgets from the\n"
     "minimum to everything kept, and the plans of the other solvers that --compare runs; 0 leaves\n"
     "them out, which is quicker. --measure runs real steps on random data and adds what they take.\n"
     "docs/report.md says how to read it.",
     "define model " PLAN_OPTIONS "frontier measure steps out quiet threads " BUILD_OPTIONS "error-format",
     verb_report, true},
    {"arena", "offsets for buffers with known lives",
     "FILE is CSV with the columns id, lower, upper and size (MiniMalloc's format): a buffer of\n"
     "size bytes lives in [lower, upper). Its rows are written to --out, or to standard output,\n"
     "with one column more: offset. No two buffers that live together overlap; offsets are not\n"
     "aligned. --json prints arena_bytes, lower_bound_bytes (the largest sum alive at once: no\n"
     "placement is smaller), gap_bytes and seconds instead.",
     "out json error-format",
     verb_arena, false},
    {"compile", "generate a shared object that trains, or runs a model, without scrimp",
     "Writes the training step as FILE.so and a C header that describes its arena. All names of the\n"
     "header begin with --name, and FILE.so exports NAME_step only: a C program can use several\n"
     "steps. examples/aot/train_mlp.c is such a program.\n"
     "With --device cuda, sm_90 or sm_80,sm_90, --out is a folder: the shared object NAME.so, which\n"
     "needs a driver, but neither scrimp nor a compiler, NAME.h, a folder with kernels for each\n"
     "architecture and manifest.json. The program is the same (docs/cuda.md).\n"
     "--inference compiles the model alone, with the weights of --checkpoint in FILE.weights: no\n"
     "dropout, batch normalization folded into the weights in front of it, least memory. The header\n"
     "has NAME_load and NAME_infer; examples/aot/run_convnet.c is such a program.",
     "define model " PLAN_OPTIONS "inference checkpoint no-ema out header name tune threads quiet " BUILD_OPTIONS "error-format",
     verb_compile, true},
    {"data", "made-up data where a model looks for its own",
     "Writes a small stand-in for the data that the model's train section names, in their real format\n"
     "and place (or --data PATH): digits for mnist, pictures, sounds, sentences, tokens, arrays, a\n"
     "table. The files are the same everywhere, and a model learns from them, so that `train` can be tried\n"
     "without the real ones. What is there is never written over.",
     "define model data quiet error-format",
     verb_data, false},
    {"train", "train a model",
     "Writes checkpoints to --out; without it the weights are lost at the end. Ctrl-C, a TERM signal\n"
     "or a closed terminal (HUP) lets the step finish, saves, and ends by that signal: the shell's\n"
     "exit code is 130 (143, 129). Ctrl-C again ends at once. A reader of messages or of --log - may\n"
     "leave: training goes on.\n"
     "--resume continues the run in --out, bit for bit: options, data and seed are given again, and\n"
     "compared; --overwrite replaces it. --steps ends the run at step N; the schedule of the learning\n"
     "rate keeps the length that the model gives it.\n"
     "A line of --log has step, loss, the metrics, grad_norm, lr and seconds. An evaluation has a line\n"
     "of its own behind its step's, with the same step: val_loss and val_METRIC. FILE.csv has a column\n"
     "for each, empty where a line has no such value, and a first line that names them. With --resume,\n"
     "lines past the checkpoint are cut, and TensorBoard forgets them.\n"
     "Every save is made and waited for; a note says so when they take a fifth of the time.\n"
     "A loss, gradient norm, weight or state that is not finite ends the run (--on-nan stop), and\n"
     "never replaces a finite checkpoint: it is saved in DIR/diverged. warn goes on; skip takes the\n"
     "step back, with a copy of weights and state outside the budget.",
     "define model " PLAN_OPTIONS "steps data resume overwrite out keep-best keep-last checkpoint no-ema seed threads keep-denormals log tensorboard on-nan overfit tune quiet " BUILD_OPTIONS
     "error-format",
     verb_train, true},
    {"eval", "loss and accuracy on the held-out part",
     "Weights come from --checkpoint: a folder written by train, or a safetensors file.",
     "define model checkpoint no-ema data seed threads keep-denormals no-chunks json " BUILD_OPTIONS
     "error-format",
     verb_eval, true},
    {"predict", "what a trained model makes of given examples",
     "Weights come from --checkpoint. --input NAME=FILE is a field of the batch, which the train\n"
     "section then prepares as for training, or else an input of the model alone; without a name it is\n"
     "the input that the file is called like, or the only one. FILE is a NumPy array (.npy), or holds\n"
     "one (.npz, .safetensors), whose first axis counts examples, any number of them; where the section\n"
     "reads an imagefolder, mnist, cifar10 or audiofolder a picture or sound, or a folder of them,\n"
     "sorted by path; where it reads csv a table with these columns, the label's or none, which gives\n"
     "all fields; for token ids a text, which becomes windows as long as the model sees, the last one\n"
     "filled up with zeros. Results go to --out: y.npy, of further results y.1.npy, ... With --out y.csv,\n"
     "or without --out to standard output, they are text: a line for each example, with the class that\n"
     "is predicted where there is one, and the file of a picture or sound, or with --json an object.\n"
     "Results that count no examples are left out. It is the inference form: no dropout, running\n"
     "statistics.\n"
     "-D N=.. says how many examples run at once.",
     "define model checkpoint no-ema input out seed threads keep-denormals json quiet " BUILD_OPTIONS "error-format",
     verb_predict, true},
    {"generate", "write text with a language model",
     "Continues --prompt, one token at a time, with the weights of --checkpoint. For a model of\n"
     "more than 256 tokens that are not characters, prompt and text are token numbers.",
     "define model checkpoint no-ema prompt tokens temperature top-k seed threads keep-denormals " BUILD_OPTIONS "error-format",
     verb_generate, true},
    {"bench", "time per step, GFLOP/s, share of the machine's peak",
     "Runs real steps (2 to warm up, then 9 or --steps) on random data of the model's shapes and\n"
     "measures each step and every kernel of it. All figures are medians of these steps, with what\n"
     "the middle half of them lies between. `where` is the part and the line of the model that a kernel\n"
     "is for, with * for several numbers. `outside kernels` is what a step takes between its\n"
     "kernels; `waiting` the share of a kernel's time in which threads have no work: they wait for\n"
     "the slowest, which on a busy machine is most of it; `rest` is what its median is above the sum\n"
     "of the rows: medians do not add up where other programs disturb one kernel in one step and\n"
     "another in the next. On a device kernels are timed apart, launch by launch, the step as one\n"
     "graph, and waiting cannot be told; also told: what is used beside the arena.\n"
     "--trace writes the steps for https://ui.perfetto.dev or chrome://tracing, which open it without\n"
     "sending it anywhere: a track for each thread with its kernels and waits, and bytes in memory.\n"
     "--against compares two settings: A, the command as it is, and B, the same with more options\n"
     "behind it, which win. Steps take turns, A B B A and so on, each behind one that is not counted;\n"
     "without --steps 20 of each. Told is the ratio of the medians, B to A, and where it lies in 95%\n"
     "of 2000 draws of such pairs (the bootstrap), and which is faster, if that can be told. Both\n"
     "arenas are in memory at once.",
     "define model " PLAN_OPTIONS "steps threads keep-denormals trace against json " BUILD_OPTIONS "error-format",
     verb_bench, true},
    {"tune", "find the fastest variants of a model's kernels on this machine",
     "Matrix products and convolutions have variants, with other tiles, blocks and tasks, but never\n"
     "another order of a sum: whatever is chosen, no bit changes. A round measures one variant of\n"
     "all kernels against the defaults, step by step in turns (7, or --steps, of each), in a process\n"
     "of its own. A variant has to be faster in 95% of draws (as bench --against has them), and\n"
     "again when all that were are measured together. They are kept in the cache, for this processor and\n"
     "number of threads, and all verbs that compile use them from then on, but with --no-tuning.\n"
     "Ctrl-C ends it, and keeps what was faster by then. Two arenas are in memory at once.",
     "define model " PLAN_OPTIONS "steps threads cache jobs quiet json error-format",
     verb_tune, true},
    {"verify", "train with and without recomputation and compare every bit",
     "Compares loss, gradients, weights, running statistics and optimizer state after every step.\n"
     "Without --budget the plan is the smallest there is, without --data the data are random,\n"
     "without --steps there are 3 steps.",
     "define model " PLAN_OPTIONS "steps data seed threads keep-denormals json " BUILD_OPTIONS "error-format",
     verb_verify, true},
    {"cache", "show, verify or clear the kernel cache",
     "`show`, the default, prints what the cache holds; `verify` reads every file and lists those that\n"
     "cannot be used, which are made again when they are needed (exit code 1 if there are any);\n"
     "`clear` removes all files, or with --older those not used for so many days.\n"
     "After compiling, files go that were not used for 30 days (SCRIMP_CACHE_DAYS), then those used\n"
     "longest ago until 2GiB remain (SCRIMP_CACHE_SIZE); 0 is no limit. Running programs keep a\n"
     "copy of what they use.",
     "[show|verify|clear] older cache json error-format",
     verb_cache, false},
    {0}};
// clang-format on

const OptionRow cli_options[] = {
    {"define", 'D', FIELD_DEFINE, 0, "NAME=VALUE", "override an option of the model", 0},
    {"model", 0, FIELD_TEXT, offsetof(Cli, source.model), "NAME", "which model of the file", 0},
    {"count", 0, FIELD_TEXT, offsetof(Cli, source.count), "RULE",
     "vertices, edges and elements by a rule of the table below", 0},
    {"budget", 0, FIELD_TEXT, offsetof(Cli, plan.budget), "BYTES|P%|min",
     "memory budget of the whole step", 0},
    {"solver", 0, FIELD_TEXT, offsetof(Cli, plan.solver), "NAME",
     "recomputation solver (see plan --compare)", 1},
    {"objective", 0, FIELD_TEXT, offsetof(Cli, plan.objective), "time|memory",
     "what the solver minimises", 1},
    {"cost", 0, FIELD_TEXT, offsetof(Cli, plan.cost), "MODEL",
     "what an operation costs (see the table below)", 1},
    {"no-masks", 0, FIELD_FLAG, offsetof(Cli, plan.no_masks), NULL,
     "save whole tensors for the gradients of ReLU and max pooling", 0},
    {"no-views", 0, FIELD_FLAG, offsetof(Cli, plan.no_views), NULL,
     "copy the pieces of concatenations and slices", 0},
    {"no-norms", 0, FIELD_FLAG, offsetof(Cli, plan.no_norms), NULL,
     "keep images behind batch normalization as tensors", 0},
    {"no-attention", 0, FIELD_FLAG, offsetof(Cli, plan.no_attention), NULL,
     "keep the scores of attention as tensors", 0},
    {"no-chunks", 0, FIELD_FLAG, offsetof(Cli, plan.no_chunks), NULL,
     "keep all logits of a loss as one tensor", 0},
    {"graph", 0, FIELD_TEXT, offsetof(Cli, source.graph), "FILE.json",
     "plan this graph instead of a model's (docs/graphs.md)", 0},
    {"schedule", 0, FIELD_FLAG, offsetof(Cli, ask.schedule), NULL,
     "with --graph: also print the nodes to run, in order", 0},
    {"time-limit", 0, FIELD_POSITIVE, offsetof(Cli, plan.time_limit_seconds), "SECONDS",
     "stop solvers after this time, above 0 (default: none)", 0},
    {"effort", 0, FIELD_POSITIVE, offsetof(Cli, plan.effort), "X",
     "how much the solver scrimp searches, above 0 (default: 1)", 0},
    {"stop-at", 0, FIELD_INT, offsetof(Cli, plan.twremat_leaf_bags), "K",
     "twremat: fewer than K bags run at once (default: 1, 2, 4, ...)", 1},
    {"stage", 0, FIELD_TEXT, offsetof(Cli, dump.stage), "STAGE",
     "ast, ir, grad, remat, plan, code, asm or cuda", 0},
    {"diff", 0, FIELD_TEXT, offsetof(Cli, dump.diff), "A..B", "print the difference of two stages",
     0},
    {"print-after-all", 0, FIELD_FLAG, offsetof(Cli, dump.print_after_all), NULL,
     "print the graph after every pass", 0},
    {"dump-after", 0, FIELD_TEXT, offsetof(Cli, dump.dump_after), "PASS",
     "print the IR after this pass (to standard error)", 0},
    {"passes", 'p', FIELD_TEXT, offsetof(Cli, dump.passes), "PASSES", "the passes to run", 0},
    {"no-loc", 0, FIELD_FLAG, offsetof(Cli, output.no_loc), NULL, "leave source locations out", 0},
    {"dot", 0, FIELD_FLAG, offsetof(Cli, output.dot), NULL, "graphviz instead of IR text", 0},
    {"steps", 0, FIELD_INT, offsetof(Cli, run.steps), "N", "how many steps (updates)", 1},
    {"data", 0, FIELD_TEXT, offsetof(Cli, run.data), "PATH",
     "path of the data, from the current folder, instead of the model's", 0},
    {"resume", 0, FIELD_FLAG, offsetof(Cli, run.resume), NULL, "continue the run in --out", 0},
    {"overwrite", 0, FIELD_FLAG, offsetof(Cli, run.overwrite), NULL,
     "replace the run that is in --out", 0},
    {"keep-best", 0, FIELD_FLAG, offsetof(Cli, run.keep_best), NULL,
     "also keep the state with the lowest held-out loss, in DIR/best", 0},
    {"keep-last", 0, FIELD_INT, offsetof(Cli, run.keep_last), "K",
     "also keep the states of the last K saves, in DIR/step-STEP", 1},
    {"out", 'o', FIELD_TEXT, offsetof(Cli, output.out), "PATH", "where results go", 1},
    {"arena-csv", 0, FIELD_TEXT, offsetof(Cli, ask.arena_csv), "FILE.csv",
     "write the buffers of the arena; - prints only these", 0},
    {"peak", 0, FIELD_FLAG, offsetof(Cli, ask.peak), NULL,
     "print what is in memory when most is, by part of the model", 0},
    {"why", 0, FIELD_TEXT, offsetof(Cli, ask.why), "%NAME",
     "print why an operation runs again (%conv1~1), or not", 1},
    {"svg", 0, FIELD_TEXT, offsetof(Cli, ask.svg), "FILE.svg",
     "draw the plan; - prints only the picture", 1},
    {"header", 0, FIELD_TEXT, offsetof(Cli, output.header), "FILE.h",
     "where the C header goes (default: beside the object)", 0},
    {"name", 0, FIELD_TEXT, offsetof(Cli, output.name), "NAME",
     "what names in the header begin with (default: FILE's name)", 1},
    {"checkpoint", 0, FIELD_TEXT, offsetof(Cli, run.checkpoint), "PATH",
     "a folder written by train, or a .safetensors file", 0},
    {"no-ema", 0, FIELD_FLAG, offsetof(Cli, run.no_ema), NULL,
     "the run's weights as they are, not their running means (ema)", 0},
    {"log", 0, FIELD_TEXT, offsetof(Cli, run.log), "FILE",
     "one JSON object a step; FILE.csv: a line of values", 0},
    {"tensorboard", 0, FIELD_TEXT, offsetof(Cli, run.tensorboard), "DIR",
     "write the same for TensorBoard, into a new file in DIR", 1},
    {"trace", 0, FIELD_TEXT, offsetof(Cli, run.trace), "FILE.json",
     "write what threads ran when (Chrome's format); - prints only this", 1},
    {"against", 0, FIELD_TEXT, offsetof(Cli, run.against), "'OPTIONS'",
     "compare with these options added, step by step in turns", 1},
    {"on-nan", 0, FIELD_TEXT, offsetof(Cli, run.on_nan), "stop|warn|skip",
     "a loss that is not finite: stop (default), go on, undo the step", 1},
    {"overfit", 0, FIELD_FLAG, offsetof(Cli, run.overfit), NULL, "train on the first batch only",
     0},
    {"input", 'i', FIELD_INPUT, 0, "[NAME=]FILE", "examples (may be given several times)", 0},
    {"prompt", 0, FIELD_TEXT, offsetof(Cli, generate.prompt), "TEXT", "text to continue", 0},
    {"tokens", 0, FIELD_INT, offsetof(Cli, generate.tokens), "N",
     "how many tokens to write (default 500)", 1},
    {"temperature", 0, FIELD_FLOAT, offsetof(Cli, generate.temperature), "T",
     "0 = always the likeliest token (default 0.8)", 0},
    {"top-k", 0, FIELD_INT, offsetof(Cli, generate.top_k), "K",
     "only the K likeliest tokens (default: all)", 1},
    {"seed", 0, FIELD_SEED, offsetof(Cli, run.seed), "N", "seed of everything random", 0},
    {"threads", 0, FIELD_INT, offsetof(Cli, build.threads), "N",
     "threads (default: all cores it may use); never changes a bit", 1},
    {"keep-denormals", 0, FIELD_FLAG, offsetof(Cli, run.keep_denormals), NULL,
     "compute with numbers below 2^-126: slower; implies --exact", 0},
    {"compare", 0, FIELD_FLAG, offsetof(Cli, ask.compare), NULL, "a row for every solver", 0},
    {"max-batch", 0, FIELD_FLAG, offsetof(Cli, ask.max_batch), NULL,
     "the largest batch (option N) within the budget, and its time", 0},
    {"sweep", 0, FIELD_INT, offsetof(Cli, ask.sweep), "N",
     "N budgets from the minimum to everything kept, at most 10000", 2},
    {"frontier", 0, FIELD_INT, offsetof(Cli, ask.frontier), "N",
     "budgets of the frontier, at least 2 (default 5); 0: no frontier", 0},
    {"measure", 0, FIELD_FLAG, offsetof(Cli, ask.measure), NULL,
     "run steps and show what they take", 0},
    {"device", 0, FIELD_TEXT, offsetof(Cli, build.device), "DEVICE",
     "cpu (default), cuda, or the CUDA architecture sm_XY", 0},
    {"inference", 0, FIELD_FLAG, offsetof(Cli, build.inference), NULL,
     "the trained model alone, in place of its training step", 0},
    {"exact", 0, FIELD_FLAG, offsetof(Cli, build.exact), NULL,
     "bf16 does not round weights; a device has the same bits", 0},
    {"fast", 0, FIELD_FLAG, offsetof(Cli, build.fast), NULL,
     "on a device: NVIDIA's libraries where they are (the default)", 0},
    {"march", 0, FIELD_TEXT, offsetof(Cli, build.march), "TARGET",
     "instruction set (default: this host's)", 0},
    {"cache", 0, FIELD_TEXT, offsetof(Cli, build.cache), "DIR",
     "kernel cache (default: $SCRIMP_CACHE, ~/.cache/scrimp)", 0},
    {"no-cache", 0, FIELD_FLAG, offsetof(Cli, build.no_cache), NULL, "compile everything anew", 0},
    {"no-tuning", 0, FIELD_FLAG, offsetof(Cli, build.no_tuning), NULL,
     "kernels as they are without `scrimp tune`", 0},
    {"no-strips", 0, FIELD_FLAG, offsetof(Cli, build.no_strips), NULL,
     "no kernel follows another strip by strip: the same bits, slower", 0},
    {"tune", 0, FIELD_FLAG, offsetof(Cli, build.tune), NULL,
     "first do what `scrimp tune` does, unless it is done", 0},
    {"older", 0, FIELD_POSITIVE, offsetof(Cli, build.older), "DAYS",
     "clear: only what was not used for so many days", 0},
    {"jobs", 'j', FIELD_INT, offsetof(Cli, build.jobs), "N",
     "compiler processes at once (default: as --threads)", 1},
    {"json", 0, FIELD_FLAG, offsetof(Cli, output.json), NULL, "JSON on standard output", 0},
    {"quiet", 'q', FIELD_FLAG, offsetof(Cli, output.quiet), NULL, "no progress lines", 0},
    {"error-format", 0, FIELD_ERRORS, 0, "text|json", "how errors are printed", 0},
};
const int cli_n_options = sizeof cli_options / sizeof *cli_options;
_Static_assert(sizeof cli_options / sizeof *cli_options <= CLI_MAX_OPTIONS, "raise the limit");
