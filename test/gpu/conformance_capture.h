/* SPDX-License-Identifier: Apache-2.0
 * The questions of conformance.c about graph capture: which calls it allows in which mode, and what
 * becomes of a stream's terminals. Part of that file, apart for its length. */

/* ---- calls while a stream captures ------------------------------------------------------------ */

/* What the calls work on; fresh for each. */
struct scene {
    gr_cu_stream capturing, other;
    gr_cu_event before, event; /* before: recorded and complete before the capture began */
    gr_cu_ptr spare, slot;     /* reserved; slot is mapped to handle for the calls that need it */
    gr_cu_handle handle, second;
    bool mapped, spare_gone, second_gone, event_gone, other_gone;
    /* made by the call itself */
    gr_cu_ptr new_range, new_memory;
    gr_cu_handle new_handle;
    gr_cu_event new_event;
    gr_cu_stream new_stream;
};

enum call {
    RESERVE,
    CREATE,
    MAP,
    SET_ACCESS,
    RETAIN,
    ADDRESS_RANGE,
    UNMAP,
    RELEASE,
    ADDRESS_FREE,
    MEM_INFO,
    EVENT_CREATE,
    EVENT_QUERY_BEFORE,
    EVENT_RECORD_OTHER,
    EVENT_QUERY_AFTER,
    EVENT_SYNC_BEFORE,
    EVENT_DESTROY,
    STREAM_CREATE,
    STREAM_QUERY_OTHER,
    STREAM_SYNC_OTHER,
    CTX_SYNC,
    MEM_ALLOC,
    GET_ID,
    GET_ID_OTHER,
    GET_CTX,
    GET_CTX_OTHER,
    STREAM_DESTROY_OTHER,
    STREAM_QUERY_SELF,
    WAIT_BEFORE,
    IS_CAPTURING_LEGACY,
    GET_CURRENT,
    CALLS
};

static const char *const call_names[CALLS] = {
    "reserve",
    "create",
    "map",
    "set access",
    "retain",
    "address range",
    "unmap",
    "release",
    "address free",
    "mem info",
    "event create",
    "query event of before",
    "record event on other stream",
    "query event after record on other",
    "synchronize event of before",
    "event destroy",
    "stream create",
    "query other stream",
    "synchronize other stream",
    "context synchronize",
    "mem alloc",
    "id of capturing stream",
    "id of other stream",
    "context of capturing stream",
    "context of other stream",
    "destroy other stream",
    "query capturing stream",
    "wait for event of before",
    "is LEGACY capturing",
    "get current context",
};

static struct scene set_scene(enum call call) {
    const size_t g = on->granule;
    struct scene s = {0};
    MUST(CALL(cuStreamCreate, &s.capturing, GR_CU_STREAM_NON_BLOCKING));
    MUST(CALL(cuStreamCreate, &s.other, GR_CU_STREAM_NON_BLOCKING));
    MUST(CALL(cuEventCreate, &s.before, GR_CU_EVENT_DISABLE_TIMING));
    MUST(CALL(cuEventCreate, &s.event, GR_CU_EVENT_DISABLE_TIMING));
    MUST(CALL(cuEventRecord, s.before, s.other));
    MUST(CALL(cuStreamSynchronize, s.other));
    s.spare = reserve(g), s.slot = reserve(g);
    s.handle = create(g), s.second = create(g);
    s.mapped = call >= SET_ACCESS && call <= UNMAP;
    if (s.mapped) MUST(CALL(cuMemMap, s.slot, g, 0, s.handle, 0));
    if (s.mapped && call != SET_ACCESS) MUST(set_access(s.slot, g));
    if (call == EVENT_QUERY_AFTER) MUST(CALL(cuEventRecord, s.event, s.other));
    return s;
}

/* After the capture has ended. */
static void clear_scene(struct scene *s) {
    const size_t g = on->granule;
    if (s->new_range) MUST(CALL(cuMemAddressFree, s->new_range, g));
    if (s->new_memory) MUST(CALL(cuMemFree, s->new_memory));
    if (s->new_handle) MUST(CALL(cuMemRelease, s->new_handle));
    if (s->new_event) MUST(CALL(cuEventDestroy, s->new_event));
    if (s->new_stream) MUST(CALL(cuStreamDestroy, s->new_stream));
    if (s->mapped) MUST(CALL(cuMemUnmap, s->slot, g));
    MUST(CALL(cuMemAddressFree, s->slot, g));
    if (!s->spare_gone) MUST(CALL(cuMemAddressFree, s->spare, g));
    MUST(CALL(cuMemRelease, s->handle));
    if (!s->second_gone) MUST(CALL(cuMemRelease, s->second));
    MUST(CALL(cuEventDestroy, s->before));
    if (!s->event_gone) MUST(CALL(cuEventDestroy, s->event));
    if (!s->other_gone) MUST(CALL(cuStreamDestroy, s->other));
    MUST(CALL(cuStreamDestroy, s->capturing));
}

static gr_cu_result make_call(enum call call, struct scene *s) {
    const size_t g = on->granule;
    const struct gr_cu_mem_prop p = prop();
    gr_cu_result code = GR_CU_UNKNOWN;
    gr_cu_context context;
    gr_cu_ptr base;
    size_t x, y;
    unsigned long long id;
    int capturing;
    switch (call) {
    case RESERVE: return CALL(cuMemAddressReserve, &s->new_range, g, 0, 0, 0);
    case CREATE: return CALL(cuMemCreate, &s->new_handle, g, &p, 0);
    case MAP:
        code = CALL(cuMemMap, s->slot, g, 0, s->handle, 0);
        s->mapped = code == GR_CU_SUCCESS;
        return code;
    case SET_ACCESS: return set_access(s->slot, g);
    case RETAIN: return CALL(cuMemRetainAllocationHandle, &s->new_handle, (void *)(uintptr_t)s->slot);
    case ADDRESS_RANGE: return CALL(cuMemGetAddressRange, &base, &x, s->slot);
    case UNMAP:
        code = CALL(cuMemUnmap, s->slot, g);
        s->mapped = code != GR_CU_SUCCESS;
        return code;
    case RELEASE:
        code = CALL(cuMemRelease, s->second);
        s->second_gone = code == GR_CU_SUCCESS;
        return code;
    case ADDRESS_FREE:
        code = CALL(cuMemAddressFree, s->spare, g);
        s->spare_gone = code == GR_CU_SUCCESS;
        return code;
    case MEM_INFO: return CALL(cuMemGetInfo, &x, &y);
    case EVENT_CREATE: return CALL(cuEventCreate, &s->new_event, GR_CU_EVENT_DISABLE_TIMING);
    case EVENT_QUERY_BEFORE: return CALL(cuEventQuery, s->before);
    case EVENT_RECORD_OTHER: return CALL(cuEventRecord, s->event, s->other);
    case EVENT_QUERY_AFTER: return CALL(cuEventQuery, s->event);
    case EVENT_SYNC_BEFORE: return CALL(cuEventSynchronize, s->before);
    case EVENT_DESTROY:
        code = CALL(cuEventDestroy, s->event);
        s->event_gone = code == GR_CU_SUCCESS;
        return code;
    case STREAM_CREATE: return CALL(cuStreamCreate, &s->new_stream, GR_CU_STREAM_NON_BLOCKING);
    case STREAM_QUERY_OTHER: return CALL(cuStreamQuery, s->other);
    case STREAM_SYNC_OTHER: return CALL(cuStreamSynchronize, s->other);
    case CTX_SYNC: return CALL(cuCtxSynchronize);
    case MEM_ALLOC: return CALL(cuMemAlloc, &s->new_memory, g);
    case GET_ID: return CALL(cuStreamGetId, s->capturing, &id);
    case GET_ID_OTHER: return CALL(cuStreamGetId, s->other, &id);
    case GET_CTX: return CALL(cuStreamGetCtx, s->capturing, &context);
    case GET_CTX_OTHER: return CALL(cuStreamGetCtx, s->other, &context);
    case STREAM_DESTROY_OTHER:
        code = CALL(cuStreamDestroy, s->other);
        s->other_gone = code == GR_CU_SUCCESS;
        return code;
    case STREAM_QUERY_SELF: return CALL(cuStreamQuery, s->capturing);
    case WAIT_BEFORE: return CALL(cuStreamWaitEvent, s->capturing, s->before, 0);
    case IS_CAPTURING_LEGACY: return CALL(cuStreamIsCapturing, GR_CU_STREAM_LEGACY, &capturing);
    case GET_CURRENT: return CALL(cuCtxGetCurrent, &context);
    case CALLS: break;
    }
    return code;
}

struct elsewhere {
    enum call call;
    struct scene *scene;
    gr_cu_result code;
};

static void *call_elsewhere(void *argument) {
    struct elsewhere *e = argument;
    gr_cu_context context = on->context;
    MUST(CALL(cuCtxPushCurrent, context));
    e->code = make_call(e->call, e->scene);
    MUST(CALL(cuCtxPopCurrent, &context));
    return NULL;
}

/* The answer: the call's code, the state of the capture after it, and how the capture ends. */
static void question_of_call(enum call call, int mode, bool elsewhere) {
    static const char *const modes[] = {"GLOBAL", "THREAD_LOCAL", "RELAXED"};
    char question[80];
    struct scene s = set_scene(call);
    gr_cu_graph graph = NULL;
    int status = -1;
    MUST(CALL(cuStreamBeginCapture, s.capturing, mode));
    struct elsewhere e = {call, &s, GR_CU_UNKNOWN};
    if (elsewhere)
        on_thread(call_elsewhere, &e);
    else
        e.code = make_call(call, &s);
    MUST(CALL(cuStreamIsCapturing, s.capturing, &status));
    gr_cu_result end = CALL(cuStreamEndCapture, s.capturing, &graph);
    snprintf(question, sizeof question, "%s%s: %s", modes[mode], elsewhere ? " elsewhere" : "",
             call_names[call]);
    say(question, "%s, status %d, end %s, graph %d", code_name(e.code), status, code_name(end),
        graph != NULL);
    if (graph != NULL) MUST(CALL(cuGraphDestroy, graph));
    clear_scene(&s);
}

/* ---- terminals -------------------------------------------------------------------------------- */

/* Nodes by order of appearance: addresses differ, the structure must not. */
static gr_cu_node seen[32];
static size_t seen_count;

static size_t number_of(gr_cu_node node) {
    for (size_t i = 0; i < seen_count; i++)
        if (seen[i] == node) return i;
    if (seen_count < GR_COUNT(seen)) seen[seen_count++] = node;
    return seen_count - 1;
}

/* Terminals of a stream: "SUCCESS status 1 n 2: 0 1". What is not written stays as it was. */
static void show(const char *question, gr_cu_stream stream) {
    int status = 9;
    unsigned long long id = 77;
    gr_cu_graph graph = (gr_cu_graph)&status;
    const gr_cu_node *nodes = NULL;
    const struct gr_cu_edge *edges = NULL;
    size_t count = 99;
    char list[64] = "";
    gr_cu_result code = CALL(cuStreamGetCaptureInfo, stream, &status, &id, &graph, &nodes, &edges, &count);
    bool active = code == GR_CU_SUCCESS && status == GR_CU_CAPTURE_ACTIVE;
    for (size_t i = 0; active && i < count && i < 8; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), " %zu", number_of(nodes[i]));
    const char *id_is = id == 77 ? "kept" : id == 0 ? "0" : "set";
    const char *graph_is = graph == (gr_cu_graph)&status ? "kept" : graph == NULL ? "NULL" : "set";
    say(question, "%s status %d id %s graph %s n %zu:%s", code_name(code), status, id_is, graph_is, count,
        list);
}

static void questions_of_empty_nodes(gr_cu_stream a) {
    int status;
    unsigned long long id;
    gr_cu_graph graph = NULL;
    const gr_cu_node *nodes = NULL;
    const struct gr_cu_edge *edges = NULL;
    gr_cu_node copy[8], empty = NULL, into[8];
    struct gr_cu_edge between[8];
    size_t count = 0, room = 8;
    MUST(CALL(cuStreamGetCaptureInfo, a, &status, &id, &graph, &nodes, &edges, &count));
    for (size_t i = 0; i < count && i < 8; i++) copy[i] = nodes[i];
    ask("add empty node after terminals", CALL(cuGraphAddEmptyNode, &empty, graph, copy, count));
    show("a after empty node, no update", a);
    ask("update SET to empty node",
        CALL(cuStreamUpdateCaptureDependencies, a, &empty, NULL, 1, GR_CU_DEPENDENCIES_SET));
    show("a after SET", a);
    ask("count of its dependencies", CALL(cuGraphNodeGetDependencies, empty, NULL, NULL, &room));
    say("they are as many as the terminals", "%d", room == count);
    room = 8;
    into[7] = empty;
    ask("its dependencies, more room", CALL(cuGraphNodeGetDependencies, empty, into, between, &room));
    say("count given back", "%zu, the rest %s", room, into[7] == NULL ? "NULL" : "kept");
    ask("update SET to nothing",
        CALL(cuStreamUpdateCaptureDependencies, a, NULL, NULL, 0, GR_CU_DEPENDENCIES_SET));
    show("a after SET to nothing", a);
    ask("update with NULL and count 1",
        CALL(cuStreamUpdateCaptureDependencies, a, NULL, NULL, 1, GR_CU_DEPENDENCIES_SET));
    show("a after that", a);
}

static void questions_of_terminals(gr_cu_stream a, gr_cu_stream b, gr_cu_event e, gr_cu_event f,
                                   gr_cu_ptr p) {
    gr_cu_graph graph = NULL;
    size_t nodes = 0;
    seen_count = 0;
    show("idle stream", a);
    show("NULL stream", NULL);
    show("LEGACY", GR_CU_STREAM_LEGACY);
    show("PER_THREAD", GR_CU_STREAM_PER_THREAD);
    MUST(CALL(cuStreamBeginCapture, a, GR_CU_CAPTURE_MODE_THREAD_LOCAL));
    ask("begin again", CALL(cuStreamBeginCapture, a, GR_CU_CAPTURE_MODE_THREAD_LOCAL));
    show("a after begin", a);
    MUST(CALL(cuMemsetD8Async, p, 1, 16, a));
    show("a after memset 1", a);
    MUST(CALL(cuEventRecord, e, a));
    show("a after record of e", a);
    MUST(CALL(cuStreamWaitEvent, b, e, 0));
    show("b after wait for e", b);
    MUST(CALL(cuMemsetD8Async, p, 2, 16, b));
    show("b after memset 2", b);
    MUST(CALL(cuEventRecord, f, b));
    MUST(CALL(cuStreamWaitEvent, a, f, 0));
    show("a after wait for f, a holds an ancestor", a);
    MUST(CALL(cuStreamWaitEvent, a, f, 0));
    show("a after second wait for f", a);
    MUST(CALL(cuStreamWaitEvent, a, e, 0));
    show("a after wait for stale e", a);
    MUST(CALL(cuMemsetD8Async, p, 3, 16, b));
    MUST(CALL(cuMemsetD8Async, p, 4, 16, a));
    MUST(CALL(cuEventRecord, f, b));
    MUST(CALL(cuStreamWaitEvent, a, f, 0));
    show("a after true join", a);
    questions_of_empty_nodes(a);
    ask("end with no terminals", CALL(cuStreamEndCapture, a, &graph));
    if (graph != NULL) MUST(CALL(cuGraphGetNodes, graph, NULL, &nodes));
    say("nodes of the graph", "%zu", nodes);
    ask("query event of an ended capture", CALL(cuEventQuery, e));
    ask("synchronize it", CALL(cuEventSynchronize, e));
    ask("wait for it on an idle stream", CALL(cuStreamWaitEvent, b, e, 0));
    ask("record it again outside", CALL(cuEventRecord, e, b));
    MUST(CALL(cuStreamSynchronize, b));
    ask("query it then", CALL(cuEventQuery, e));
    ask("destroy graph", graph != NULL ? CALL(cuGraphDestroy, graph) : GR_CU_UNKNOWN);
}

/* A capture of a that b joined, with work on b that a does not wait for. */
static void fork_capture(gr_cu_stream a, gr_cu_stream b, gr_cu_event e, gr_cu_ptr p) {
    MUST(CALL(cuStreamBeginCapture, a, GR_CU_CAPTURE_MODE_THREAD_LOCAL));
    MUST(CALL(cuEventRecord, e, a));
    MUST(CALL(cuStreamWaitEvent, b, e, 0));
    MUST(CALL(cuMemsetD8Async, p, 1, 16, b));
}

static void questions_of_invalidation(gr_cu_stream a, gr_cu_stream b, gr_cu_event e, gr_cu_ptr p) {
    gr_cu_graph graph = NULL;
    int status = 0;
    MUST(CALL(cuStreamBeginCapture, a, GR_CU_CAPTURE_MODE_RELAXED));
    MUST(CALL(cuEventRecord, e, a));
    ask("query captured event, RELAXED", CALL(cuEventQuery, e));
    MUST(CALL(cuStreamIsCapturing, a, &status));
    say("status after that", "%d", status);
    ask("end then", CALL(cuStreamEndCapture, a, &graph));

    MUST(CALL(cuStreamBeginCapture, a, GR_CU_CAPTURE_MODE_GLOBAL));
    ask("query of capturing stream", CALL(cuStreamQuery, a));
    show("invalidated a", a);
    ask("memset in invalidated capture", CALL(cuMemsetD8Async, p, 1, 16, a));
    ask("record in invalidated capture", CALL(cuEventRecord, e, a));
    ask("query of that event", CALL(cuEventQuery, e));
    graph = (gr_cu_graph)&graph;
    ask("end of invalidated capture", CALL(cuStreamEndCapture, a, &graph));
    say("its graph is NULL", "%d", graph == NULL);
    show("a after end", a);
    ask("end again", CALL(cuStreamEndCapture, a, &graph));

    graph = NULL;
    fork_capture(a, b, e, p);
    ask("end on the joined stream", CALL(cuStreamEndCapture, b, &graph));
    show("a after end on the joined stream", a);
    show("b after end on the joined stream", b);
    ask("end on the origin then", CALL(cuStreamEndCapture, a, &graph));
    if (graph != NULL) MUST(CALL(cuGraphDestroy, graph));

    graph = NULL;
    fork_capture(a, b, e, p);
    ask("end with an unjoined fork", CALL(cuStreamEndCapture, a, &graph));
    say("graph of the unjoined", "%d", graph != NULL);
    show("b after that", b);
    if (graph != NULL) MUST(CALL(cuGraphDestroy, graph));
    MUST(CALL(cuEventRecord, e, b));
    MUST(CALL(cuStreamSynchronize, b));
}

struct ending {
    gr_cu_stream stream;
    gr_cu_graph graph;
    gr_cu_result code;
};

static void *end_elsewhere(void *argument) {
    struct ending *e = argument;
    gr_cu_context context = on->context;
    MUST(CALL(cuCtxPushCurrent, context));
    e->code = CALL(cuStreamEndCapture, e->stream, &e->graph);
    MUST(CALL(cuCtxPopCurrent, &context));
    return NULL;
}

/* Who may end a capture that another thread began. */
static void questions_of_threads(gr_cu_stream a, gr_cu_ptr p) {
    for (int mode = GR_CU_CAPTURE_MODE_GLOBAL; mode <= GR_CU_CAPTURE_MODE_RELAXED; mode++) {
        struct ending e = {.stream = a};
        gr_cu_graph graph = NULL;
        MUST(CALL(cuStreamBeginCapture, a, mode));
        MUST(CALL(cuMemsetD8Async, p, 1, 16, a));
        on_thread(end_elsewhere, &e);
        say("end on another thread", "mode %d: %s, graph %d", mode, code_name(e.code), e.graph != NULL);
        show("a after that", a);
        ask("end on this thread then", CALL(cuStreamEndCapture, a, &graph));
        if (e.graph != NULL) MUST(CALL(cuGraphDestroy, e.graph));
        if (graph != NULL) MUST(CALL(cuGraphDestroy, graph));
    }
}

static void questions_of_modes(gr_cu_stream a) {
    gr_cu_graph graph = NULL;
    gr_cu_ptr memory = 0;
    int mode = GR_CU_CAPTURE_MODE_RELAXED, status = 0;
    ask("exchange mode", CALL(cuThreadExchangeStreamCaptureMode, &mode));
    say("mode of a thread at first", "%d", mode);
    MUST(CALL(cuStreamBeginCapture, a, GR_CU_CAPTURE_MODE_GLOBAL));
    ask("mem alloc under exchanged RELAXED", CALL(cuMemAlloc, &memory, on->granule));
    MUST(CALL(cuStreamIsCapturing, a, &status));
    say("status under RELAXED", "%d", status);
    ask("end under RELAXED", CALL(cuStreamEndCapture, a, &graph));
    MUST(CALL(cuThreadExchangeStreamCaptureMode, &mode));
    say("mode that was exchanged", "%d", mode);
    if (memory != 0) MUST(CALL(cuMemFree, memory));
    if (graph != NULL) MUST(CALL(cuGraphDestroy, graph));
    mode = 7;
    if (ask("exchange mode 7", CALL(cuThreadExchangeStreamCaptureMode, &mode)) == GR_CU_SUCCESS)
        MUST(CALL(cuThreadExchangeStreamCaptureMode, &mode));
}

static void questions_of_capture(void) {
    for (int mode = GR_CU_CAPTURE_MODE_GLOBAL; mode <= GR_CU_CAPTURE_MODE_RELAXED; mode++)
        for (int call = 0; call < CALLS; call++) question_of_call((enum call)call, mode, false);
    for (int call = 0; call < CALLS; call++)
        question_of_call((enum call)call, GR_CU_CAPTURE_MODE_GLOBAL, true);

    gr_cu_ptr p = backed(on->granule);
    gr_cu_stream a = NULL, b = NULL;
    gr_cu_event e = NULL, f = NULL;
    MUST(CALL(cuStreamCreate, &a, GR_CU_STREAM_NON_BLOCKING));
    MUST(CALL(cuStreamCreate, &b, GR_CU_STREAM_NON_BLOCKING));
    MUST(CALL(cuEventCreate, &e, GR_CU_EVENT_DISABLE_TIMING));
    MUST(CALL(cuEventCreate, &f, GR_CU_EVENT_DISABLE_TIMING));
    questions_of_terminals(a, b, e, f, p);
    questions_of_invalidation(a, b, e, p);
    questions_of_threads(a, p);
    questions_of_modes(a);
    MUST(CALL(cuStreamSynchronize, a));
    MUST(CALL(cuStreamSynchronize, b));
    MUST(CALL(cuEventDestroy, e));
    MUST(CALL(cuEventDestroy, f));
    MUST(CALL(cuStreamDestroy, a));
    MUST(CALL(cuStreamDestroy, b));
    unback(p, on->granule);
}
