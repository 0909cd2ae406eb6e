package org.suimon.filter;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;

/** Interfaces of the servlet API, of which a test answers what it is about. */
final class Stub {
    private Stub() {}

    /** Answers a method by its name. */
    interface Answers {
        Object to(String method, Object[] arguments) throws Throwable;
    }

    static <T> T of(Class<T> type, Answers answers) {
        InvocationHandler handler = (proxy, method, arguments) ->
                answers.to(method.getName(), arguments == null ? new Object[0] : arguments);
        return type.cast(Proxy.newProxyInstance(Stub.class.getClassLoader(), new Class<?>[] {type}, handler));
    }
}
