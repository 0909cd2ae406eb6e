package org.suimon.agent.weaver;

import java.util.HashSet;
import java.util.Set;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;
import org.suimon.agent.runtime.MethodCounts;

/**
 * Weaves calls into one method: where it begins, before each way out, before each jump back, and
 * into a handler around it all, so that what was begun also ends when something is thrown. What is
 * woven takes its operands from nowhere and leaves nothing, so the frames of the method stay right.
 */
abstract class MethodWeaver extends MethodVisitor {
    static final String WOVEN = "org/suimon/agent/runtime/Woven";

    private final Label from = new Label();

    MethodWeaver(MethodVisitor next) {
        super(Opcodes.ASM9, next);
    }

    /** Calls into a declared method. */
    static MethodWeaver ofDeclared(MethodVisitor next, int method, int points) {
        return new Declared(next, method, points);
    }

    /** Calls into a method that stands for a request. */
    static MethodWeaver ofRequest(MethodVisitor next) {
        return new Scope(next, "requestBegins", "requestEnds");
    }

    /** Calls into {@code HttpServlet.service}, with what the request's header says. */
    static MethodWeaver ofService(MethodVisitor next, String api, String header) {
        return new Service(next, api, header);
    }

    /** Calls into {@code setExclusiveOwnerThread}. */
    static MethodVisitor ofOwner(MethodVisitor next) {
        return new MethodVisitor(Opcodes.ASM9, next) {
            @Override
            public void visitCode() {
                super.visitCode();
                visitVarInsn(Opcodes.ALOAD, 0);
                visitVarInsn(Opcodes.ALOAD, 1);
                visitMethodInsn(Opcodes.INVOKESTATIC, WOVEN, "owner", "(Ljava/lang/Object;Ljava/lang/Thread;)V", false);
            }
        };
    }

    /** A call where a method of what a server hands to its threads begins. */
    static MethodVisitor ofHanded(MethodVisitor next, String name) {
        return new MethodVisitor(Opcodes.ASM9, next) {
            @Override
            public void visitCode() {
                super.visitCode();
                visitVarInsn(Opcodes.ALOAD, 0);
                visitMethodInsn(Opcodes.INVOKESTATIC, WOVEN, name, "(Ljava/lang/Object;)V", false);
            }
        };
    }

    abstract void begins();

    abstract void ends();

    final void call(String name, String descriptor) {
        super.visitMethodInsn(Opcodes.INVOKESTATIC, WOVEN, name, descriptor, false);
    }

    @Override
    public void visitCode() {
        super.visitCode();
        begins();
        super.visitLabel(from);
    }

    @Override
    public void visitInsn(int opcode) {
        if (opcode >= Opcodes.IRETURN && opcode <= Opcodes.RETURN) {
            ends();
        }
        super.visitInsn(opcode);
    }

    @Override
    public void visitMaxs(int stack, int locals) {
        // Last in the table: what the method catches itself never comes here.
        Label to = new Label();
        super.visitTryCatchBlock(from, to, to, null);
        super.visitLabel(to);
        super.visitFrame(Opcodes.F_FULL, 0, new Object[0], 1, new Object[] {"java/lang/Throwable"});
        ends();
        super.visitInsn(Opcodes.ATHROW);
        super.visitMaxs(stack, locals);
    }

    private static class Scope extends MethodWeaver {
        private final String begins;
        private final String ends;

        Scope(MethodVisitor next, String begins, String ends) {
            super(next);
            this.begins = begins;
            this.ends = ends;
        }

        @Override
        void begins() {
            call(begins, "()V");
        }

        @Override
        void ends() {
            call(ends, "()V");
        }
    }

    private static final class Declared extends MethodWeaver {
        private final int method;
        private final boolean hasLoops;
        private final Set<Label> passed = new HashSet<>();

        Declared(MethodVisitor next, int method, int points) {
            super(next);
            this.method = method;
            this.hasLoops = (points & MethodCounts.LOOP) != 0;
        }

        @Override
        void begins() {
            calls("begin");
        }

        @Override
        void ends() {
            calls("end");
        }

        private void calls(String name) {
            super.visitIntInsn(Opcodes.SIPUSH, method);
            call(name, "(I)V");
        }

        @Override
        public void visitLabel(Label label) {
            passed.add(label);
            super.visitLabel(label);
        }

        @Override
        public void visitJumpInsn(int opcode, Label to) {
            goesRound(to);
            super.visitJumpInsn(opcode, to);
        }

        @Override
        public void visitTableSwitchInsn(int min, int max, Label other, Label... to) {
            goesRound(other, to);
            super.visitTableSwitchInsn(min, max, other, to);
        }

        @Override
        public void visitLookupSwitchInsn(Label other, int[] keys, Label[] to) {
            goesRound(other, to);
            super.visitLookupSwitchInsn(other, keys, to);
        }

        /** A jump to a place that was passed is a loop's. */
        private void goesRound(Label first, Label... more) {
            boolean isBack = passed.contains(first);
            for (Label to : more) {
                isBack |= passed.contains(to);
            }
            if (hasLoops && isBack) {
                calls("loop");
            }
        }
    }

    private static final class Service extends Scope {
        private final String api;
        private final String header;

        Service(MethodVisitor next, String api, String header) {
            super(next, null, "serviceEnds");
            this.api = api;
            this.header = header;
        }

        /**
         * {@code request instanceof HttpServletRequest it ? it.getHeader(header) : null}, and the type by whose
         * methods the response is told of pauses; null, both, if that throws.
         */
        @Override
        void begins() {
            String request = api + "/http/HttpServletRequest";
            Object[] locals = {api + "/http/HttpServlet", api + "/ServletRequest", api + "/ServletResponse"};
            Label from = new Label();
            Label thrown = new Label();
            Label none = new Label();
            Label have = new Label();
            super.visitTryCatchBlock(from, thrown, thrown, "java/lang/Throwable");
            super.visitLabel(from);
            super.visitVarInsn(Opcodes.ALOAD, 1);
            super.visitTypeInsn(Opcodes.INSTANCEOF, request);
            super.visitJumpInsn(Opcodes.IFEQ, none);
            super.visitVarInsn(Opcodes.ALOAD, 1);
            super.visitTypeInsn(Opcodes.CHECKCAST, request);
            super.visitLdcInsn(header);
            super.visitMethodInsn(Opcodes.INVOKEINTERFACE, request, "getHeader", "(Ljava/lang/String;)Ljava/lang/String;", true);
            super.visitLdcInsn(Type.getObjectType(api + "/http/HttpServletResponse"));
            super.visitJumpInsn(Opcodes.GOTO, have);
            super.visitLabel(thrown);
            super.visitFrame(Opcodes.F_FULL, 3, locals, 1, new Object[] {"java/lang/Throwable"});
            super.visitInsn(Opcodes.POP);
            super.visitLabel(none);
            super.visitFrame(Opcodes.F_FULL, 3, locals, 0, new Object[0]);
            super.visitInsn(Opcodes.ACONST_NULL);
            super.visitInsn(Opcodes.ACONST_NULL);
            super.visitLabel(have);
            super.visitFrame(Opcodes.F_FULL, 3, locals, 2, new Object[] {"java/lang/String", "java/lang/Class"});
            super.visitVarInsn(Opcodes.ALOAD, 2);
            call("serviceBegins", "(Ljava/lang/String;Ljava/lang/Class;Ljava/lang/Object;)V");
        }
    }
}
