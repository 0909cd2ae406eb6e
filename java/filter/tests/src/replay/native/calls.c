/* Calls a library in C for Java. Whole numbers and addresses travel alike on Linux, so one shape does for all
 * functions; those that take fewer arguments do not look at the others. */
#include <dlfcn.h>
#include <jni.h>
#include <stdint.h>
#include <string.h>

#define ARGUMENTS_MAX 4

typedef int64_t (*function)(int64_t, int64_t, int64_t, int64_t);

JNIEXPORT jlong JNICALL Java_org_suimon_replay_JniCalls_open(JNIEnv *env, jclass class, jstring path) {
    (void)class;
    const char *const name = (*env)->GetStringUTFChars(env, path, NULL);
    void *const library = name == NULL ? NULL : dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (name != NULL) (*env)->ReleaseStringUTFChars(env, path, name);
    return (jlong)(intptr_t)library;
}

JNIEXPORT jlong JNICALL Java_org_suimon_replay_JniCalls_find(JNIEnv *env, jclass class, jlong library, jstring name) {
    (void)class;
    const char *const called = (*env)->GetStringUTFChars(env, name, NULL);
    void *const found = called == NULL ? NULL : dlsym((void *)(intptr_t)library, called);
    if (called != NULL) (*env)->ReleaseStringUTFChars(env, name, called);
    return (jlong)(intptr_t)found;
}

JNIEXPORT jlong JNICALL Java_org_suimon_replay_JniCalls_invoke(JNIEnv *env, jclass class, jlong address,
                                                               jlongArray arguments) {
    (void)class;
    jlong given[ARGUMENTS_MAX];
    function call;
    (*env)->GetLongArrayRegion(env, arguments, 0, ARGUMENTS_MAX, given);
    memcpy(&call, &address, sizeof call);
    return call(given[0], given[1], given[2], given[3]);
}

JNIEXPORT jlong JNICALL Java_org_suimon_replay_JniCalls_addressOf(JNIEnv *env, jclass class, jobject buffer) {
    (void)class;
    return (jlong)(intptr_t)(*env)->GetDirectBufferAddress(env, buffer);
}
