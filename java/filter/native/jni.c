/* Suimon's C interface for Java 17 to 21, which have no Foreign Function API.
 *
 * The library itself is opened by its path and never closed: each class loader has a copy of this small
 * file, as the JVM demands, and all of them share the one library of the process. */
#include <dlfcn.h>
#include <jni.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* As in suimon.h. */
typedef struct {
    uint8_t *data;
    size_t capacity;
    size_t length;
} suimon_buffer;

#define SUIMON_INVALID (-1)

/* What fits is copied to the stack: heads of requests, and what an admitted request is told. */
#define STACK_BYTES 8192

static struct {
    void *(*server_open_at)(const uint8_t *, size_t, const uint8_t *, size_t, suimon_buffer *);
    int32_t (*server_enter)(const void *, const uint8_t *, size_t, const uint8_t *, size_t, uint32_t, uint64_t *,
                            suimon_buffer *);
    int32_t (*server_next)(const void *, uint32_t, uint64_t *, suimon_buffer *);
    int32_t (*server_result)(const void *, uint64_t, suimon_buffer *);
    int32_t (*server_leave)(const void *, uint64_t);
    int32_t (*server_answer)(const void *, uint64_t, uint32_t, const uint8_t *, size_t, suimon_buffer *);
    int32_t (*server_end)(const void *, uint64_t);
    int32_t (*server_end_and_next)(const void *, uint64_t, uint64_t *, suimon_buffer *);
    int32_t (*server_fail)(const void *, uint64_t);
    int32_t (*server_state)(const void *, suimon_buffer *);
    int32_t (*server_admin)(const void *, suimon_buffer *);
    void (*server_close)(void *);
} suimon;

/* Bytes of Java while C uses them. */
typedef struct {
    uint8_t on_stack[STACK_BYTES];
    uint8_t *bytes;
    size_t length;
} borrowed;

static int make_room(borrowed *room, size_t length) {
    room->length = length;
    room->bytes = length <= STACK_BYTES ? room->on_stack : malloc(length);
    return room->bytes != NULL;
}

static int borrow(JNIEnv *env, borrowed *room, jbyteArray from, jint length) {
    if (!make_room(room, (size_t)length)) {
        return 0;
    }
    (*env)->GetByteArrayRegion(env, from, 0, length, (jbyte *)room->bytes);
    return 1;
}

static void give_back(borrowed *room) {
    if (room->bytes != room->on_stack) {
        free(room->bytes);
    }
}

static int reply_room(JNIEnv *env, borrowed *room, suimon_buffer *reply, jbyteArray to) {
    if (!make_room(room, (size_t)(*env)->GetArrayLength(env, to))) {
        return 0;
    }
    *reply = (suimon_buffer){room->bytes, room->length, 0};
    return 1;
}

/* Hands the reply to Java: its bytes, as far as they fit, and in `numbers` the request and the length. */
static void hand_over(JNIEnv *env, borrowed *room, const suimon_buffer *reply, uint64_t request, jbyteArray to,
                      jlongArray numbers) {
    const jlong values[2] = {(jlong)request, (jlong)reply->length};
    if (reply->length > 0 && reply->length <= room->length) {
        (*env)->SetByteArrayRegion(env, to, 0, (jsize)reply->length, (const jbyte *)room->bytes);
    }
    (*env)->SetLongArrayRegion(env, numbers, 0, 2, values);
    give_back(room);
}

static int find(void *library, void *place, const char *name) {
    void *const found = dlsym(library, name);
    memcpy(place, &found, sizeof found);
    return found != NULL;
}

/* Returns NULL, or what is wrong. */
JNIEXPORT jstring JNICALL Java_org_suimon_filter_JniLibrary_bind(JNIEnv *env, jclass class, jstring path) {
    (void)class;
    const char *const name = (*env)->GetStringUTFChars(env, path, NULL);
    if (name == NULL) {
        return NULL;
    }
    void *const library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    (*env)->ReleaseStringUTFChars(env, path, name);
    const int is_whole = library != NULL && find(library, &suimon.server_open_at, "suimon_server_open_at") &&
                         find(library, &suimon.server_enter, "suimon_server_enter") &&
                         find(library, &suimon.server_next, "suimon_server_next") &&
                         find(library, &suimon.server_result, "suimon_server_result") &&
                         find(library, &suimon.server_leave, "suimon_server_leave") &&
                         find(library, &suimon.server_answer, "suimon_server_answer") &&
                         find(library, &suimon.server_end, "suimon_server_end") &&
                         find(library, &suimon.server_end_and_next, "suimon_server_end_and_next") &&
                         find(library, &suimon.server_fail, "suimon_server_fail") &&
                         find(library, &suimon.server_state, "suimon_server_state") &&
                         find(library, &suimon.server_admin, "suimon_server_admin") &&
                         find(library, &suimon.server_close, "suimon_server_close");
    return is_whole ? NULL : (*env)->NewStringUTF(env, dlerror());
}

JNIEXPORT jlong JNICALL Java_org_suimon_filter_JniLibrary_serverOpenAt(JNIEnv *env, jclass class, jbyteArray settings,
                                                                       jbyteArray mount_path, jbyteArray to,
                                                                       jlongArray numbers) {
    (void)class;
    borrowed text, path, room;
    suimon_buffer error;
    void *server = NULL;
    if (!borrow(env, &text, settings, (*env)->GetArrayLength(env, settings))) {
        return 0;
    }
    if (borrow(env, &path, mount_path, (*env)->GetArrayLength(env, mount_path))) {
        if (reply_room(env, &room, &error, to)) {
            server = suimon.server_open_at(text.bytes, text.length, path.bytes, path.length, &error);
            hand_over(env, &room, &error, 0, to, numbers);
        }
        give_back(&path);
    }
    give_back(&text);
    return (jlong)(intptr_t)server;
}

JNIEXPORT jint JNICALL Java_org_suimon_filter_JniLibrary_serverEnter(JNIEnv *env, jclass class, jlong server,
                                                                     jbyteArray head, jint head_length,
                                                                     jbyteArray address, jboolean is_tls,
                                                                     jbyteArray to, jlongArray numbers) {
    (void)class;
    borrowed request_head, client, room;
    suimon_buffer reply;
    uint64_t request = 0;
    int32_t result = SUIMON_INVALID;
    if (!borrow(env, &request_head, head, head_length)) {
        return result;
    }
    if (borrow(env, &client, address, (*env)->GetArrayLength(env, address))) {
        if (reply_room(env, &room, &reply, to)) {
            result = suimon.server_enter((const void *)(intptr_t)server, request_head.bytes, request_head.length,
                                         client.bytes, client.length, is_tls ? 1 : 0, &request, &reply);
            hand_over(env, &room, &reply, request, to, numbers);
        }
        give_back(&client);
    }
    give_back(&request_head);
    return result;
}

JNIEXPORT jint JNICALL Java_org_suimon_filter_JniLibrary_serverNext(JNIEnv *env, jclass class, jlong server,
                                                                    jint timeout_ms, jbyteArray to,
                                                                    jlongArray numbers) {
    (void)class;
    borrowed room;
    suimon_buffer reply;
    uint64_t request = 0;
    if (!reply_room(env, &room, &reply, to)) {
        return SUIMON_INVALID;
    }
    const int32_t result =
        suimon.server_next((const void *)(intptr_t)server, (uint32_t)timeout_ms, &request, &reply);
    hand_over(env, &room, &reply, request, to, numbers);
    return result;
}

JNIEXPORT jint JNICALL Java_org_suimon_filter_JniLibrary_serverResult(JNIEnv *env, jclass class, jlong server,
                                                                      jlong request, jbyteArray to,
                                                                      jlongArray numbers) {
    (void)class;
    borrowed room;
    suimon_buffer reply;
    if (!reply_room(env, &room, &reply, to)) {
        return SUIMON_INVALID;
    }
    const int32_t result = suimon.server_result((const void *)(intptr_t)server, (uint64_t)request, &reply);
    hand_over(env, &room, &reply, (uint64_t)request, to, numbers);
    return result;
}

JNIEXPORT jint JNICALL Java_org_suimon_filter_JniLibrary_serverLeave(JNIEnv *env, jclass class, jlong server,
                                                                     jlong request) {
    (void)env, (void)class;
    return suimon.server_leave((const void *)(intptr_t)server, (uint64_t)request);
}

JNIEXPORT jint JNICALL Java_org_suimon_filter_JniLibrary_serverAnswer(JNIEnv *env, jclass class, jlong server,
                                                                      jlong request, jint status, jbyteArray lines,
                                                                      jbyteArray to, jlongArray numbers) {
    (void)class;
    borrowed said, room;
    suimon_buffer reply;
    int32_t result = SUIMON_INVALID;
    if (!borrow(env, &said, lines, (*env)->GetArrayLength(env, lines))) {
        return result;
    }
    if (reply_room(env, &room, &reply, to)) {
        result = suimon.server_answer((const void *)(intptr_t)server, (uint64_t)request, (uint32_t)status,
                                      said.bytes, said.length, &reply);
        hand_over(env, &room, &reply, (uint64_t)request, to, numbers);
    }
    give_back(&said);
    return result;
}

JNIEXPORT jint JNICALL Java_org_suimon_filter_JniLibrary_serverEnd(JNIEnv *env, jclass class, jlong server,
                                                                   jlong request) {
    (void)env, (void)class;
    return suimon.server_end((const void *)(intptr_t)server, (uint64_t)request);
}

JNIEXPORT jint JNICALL Java_org_suimon_filter_JniLibrary_serverEndAndNext(JNIEnv *env, jclass class, jlong server,
                                                                          jlong request, jbyteArray to,
                                                                          jlongArray numbers) {
    (void)class;
    borrowed room;
    suimon_buffer reply;
    uint64_t next = 0;
    if (!reply_room(env, &room, &reply, to)) {
        return SUIMON_INVALID;
    }
    int32_t result =
        suimon.server_end_and_next((const void *)(intptr_t)server, (uint64_t)request, &next, &reply);
    hand_over(env, &room, &reply, next, to, numbers);
    return result;
}

JNIEXPORT jint JNICALL Java_org_suimon_filter_JniLibrary_serverFail(JNIEnv *env, jclass class, jlong server,
                                                                    jlong request) {
    (void)env, (void)class;
    return suimon.server_fail((const void *)(intptr_t)server, (uint64_t)request);
}

static jint tell(JNIEnv *env, jlong server, jbyteArray to, jlongArray numbers,
                 int32_t (*what)(const void *, suimon_buffer *)) {
    borrowed room;
    suimon_buffer reply;
    if (!reply_room(env, &room, &reply, to)) {
        return SUIMON_INVALID;
    }
    const int32_t result = what((const void *)(intptr_t)server, &reply);
    hand_over(env, &room, &reply, 0, to, numbers);
    return result;
}

JNIEXPORT jint JNICALL Java_org_suimon_filter_JniLibrary_serverState(JNIEnv *env, jclass class, jlong server,
                                                                     jbyteArray to, jlongArray numbers) {
    (void)class;
    return tell(env, server, to, numbers, suimon.server_state);
}

JNIEXPORT jint JNICALL Java_org_suimon_filter_JniLibrary_serverAdmin(JNIEnv *env, jclass class, jlong server,
                                                                     jbyteArray to, jlongArray numbers) {
    (void)class;
    return tell(env, server, to, numbers, suimon.server_admin);
}

JNIEXPORT void JNICALL Java_org_suimon_filter_JniLibrary_serverClose(JNIEnv *env, jclass class, jlong server) {
    (void)env, (void)class;
    suimon.server_close((void *)(intptr_t)server);
}
