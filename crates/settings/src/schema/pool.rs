//! Workers that the gateway runs itself.

use super::DefaultValue::{Is, Required, Unset};
use super::{ENTRIES_MAX, Form, GIB, HOUR, MIB, SECOND, Section, key};
use crate::shape::Shape::{Count, List, Name, Path, Route, Size, Text, Time, UrlPath, Variable, Word};
use suimon_control::SizeLawKind;
use suimon_params::pool::{POOLS_MAX, WORKERS_MAX, WorkerKind, WorkerListen};

pub(super) const POOL: Section = Section {
    path: "pool",
    form: Form::Repeated(POOLS_MAX),
    doc: "The application, or a part of it, as processes that the gateway starts, gives one request at a time and replaces, instead of upstream.nodes: see docs/pools.md. How many there are is found while running.",
    keys: &[
        key("name", Name, Required { example: "\"shop\"" }, "What status, metrics and the log call it."),
        key(
            "routes",
            List(&Route, ENTRIES_MAX),
            Is("[]"),
            "The requests that its workers take, such as [\"* /reports/*\"]; every other goes to the pool without routes, or to upstream.nodes. Routes found from traffic never mix those of two pools.",
        ),
        key("kind", Word(WorkerKind::CHOICES), Is("\"http\""), "What the workers speak."),
        key(
            "command",
            List(&Text, ENTRIES_MAX),
            Unset {
                means: "needed; with kind = \"cgi\", the program that [upstream.fastcgi] names for the path is run itself",
                example: "[\"/srv/shop/worker\", \"{socket}\"]",
            },
            "Program and arguments of a worker: no shell reads them. {socket} stands for the path of its Unix socket, {port} for its port on the loopback interface.",
        ),
        key(
            "listen",
            Word(WorkerListen::CHOICES),
            Unset {
                means: "what the command says by {socket} or {port}, else \"stdin\"",
                example: "\"socket\"",
            },
            "Where a worker takes requests.",
        ),
        key(
            "environment",
            List(&Variable, ENTRIES_MAX),
            Is("[]"),
            "Its environment, beside the gateway's PATH. The rest of the gateway's environment is not passed on. For PHP, PHP_FCGI_MAX_REQUESTS=0 is added: the pool replaces workers itself.",
        ),
        key(
            "directory",
            Path,
            Unset {
                means: "the gateway's; with kind = \"cgi\" and without a command, the program's folder",
                example: "\"/srv/shop\"",
            },
            "Its working directory.",
        ),
        key(
            "user",
            Text,
            Unset { means: "the gateway's, which must not be root then", example: "\"nobody\"" },
            "The user that it runs as, with that user's groups.",
        ),
        key(
            "sockets",
            Path,
            Unset {
                means: "/run/suimon for root, else suimon-UID in the folder for temporary files",
                example: "\"/run/suimon\"",
            },
            "Folder for its sockets; made if it is not there, and refused if it is a link, somebody else's or writable for others.",
        ),
        key(
            "size_law",
            Word(SizeLawKind::CHOICES),
            Is("\"measured\""),
            "How the number of workers is found. With kind = \"cgi\" it is fixed.",
        ),
        key(
            "workers",
            Count(1, WORKERS_MAX as u64),
            Unset { means: "2 per core and one; with kind = \"cgi\", max if that is given", example: "8" },
            "With size_law = \"fixed\": how many. With kind = \"cgi\": how many processes run at once.",
        ),
        key("min", Count(1, WORKERS_MAX as u64), Is("1"), "The fewest workers, however idle they are."),
        key(
            "max",
            Count(1, WORKERS_MAX as u64),
            Is("256"),
            "The most workers, as far as memory allows. Fewer if the database takes fewer connections.",
        ),
        key(
            "memory",
            Size(16 * MIB, 4096 * GIB),
            Unset { means: "what machine and control group have left", example: "\"2GiB\"" },
            "What all workers together may take. None is started beyond it, as far as can be known from those there are.",
        ),
        key(
            "memory_reserve",
            Size(0, 4096 * GIB),
            Unset { means: "a tenth of what there is", example: "\"512MiB\"" },
            "What is left to others of the memory that there is.",
        ),
        key(
            "ready",
            UrlPath,
            Unset { means: "any answer will do", example: "\"/health\"" },
            "Path that a worker must have answered with success, or by sending elsewhere, before it gets requests: what its first page loads is loaded then. A FastCGI worker without one gets requests as soon as it answers at all.",
        ),
        key(
            "ready_within",
            Time(SECOND, HOUR),
            Is("\"30s\""),
            "The longest from the start of a worker until it takes requests.",
        ),
        key(
            "stop_within",
            Time(SECOND, HOUR),
            Is("\"10s\""),
            "How long a worker may take to end when asked to (SIGTERM), before it is killed.",
        ),
        key(
            "requests_max",
            Count(0, 1_000_000_000),
            Is("0"),
            "Requests after which a worker is replaced, give or take a tenth; 0: never. Its replacement is ready before it ends.",
        ),
        key(
            "age_max",
            Time(0, 1000 * HOUR),
            Is("\"0s\""),
            "Age at which a worker is replaced, give or take a tenth; 0: never.",
        ),
        key(
            "worker_memory_max",
            Size(MIB, 4096 * GIB),
            Unset { means: "none is replaced for its memory", example: "\"256MiB\"" },
            "Memory (proportional set size) above which a worker is replaced, though not in its first ten seconds.",
        ),
    ],
};
