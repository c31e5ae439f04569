//! Keys of compose files. Figures are those of the Compose Specification and of `docker compose config`.

use super::{Case, case};

pub(super) fn cases() -> Vec<Case> {
    [programs(), files(), limits(), order(), names(), networks(), others(), several()]
        .into_iter()
        .flatten()
        .collect()
}

fn row(
    key: &'static str,
    carried: &'static str,
    file: impl Into<String>,
    figure: &'static str,
) -> Case {
    case("Docker Compose", key, carried, file, figure)
}

/// A service with an image and what else is said.
fn service(keys: &str) -> String {
    format!("services:\n  a: {{image: x, {keys}}}\n")
}

/// The same with what stands beside `services`.
fn with(keys: &str, rest: &str) -> String {
    format!("{}{rest}\n", service(keys))
}

/// A service and another that waits for it.
fn two(keys: &str, condition: &str) -> String {
    format!("{}  b: {{image: y, depends_on: {{a: {{{condition}}}}}}}\n", service(keys))
}

fn programs() -> Vec<Case> {
    vec![
        row("`image`", "exact", service("labels: {}"), "a: {image: \"oci://x\""),
        row(
            "`build`",
            "not carried",
            "services: {a: {build: .}}\n",
            "docker save -o FILE … a.tar (a)",
        ),
        row("`platform`", "exact", service("platform: linux/arm64/v8"), "platform: linux/arm64"),
        row(
            "`entrypoint`",
            "exact",
            service("entrypoint: [/s, 'a b'], command: c d"),
            "run: [\"/s\", \"a b\", \"c\", \"d\"]",
        ),
        row("`command`", "exact", service("command: -p 'a b'"), "args: [\"-p\", \"a b\"]"),
        row(
            "`environment`",
            "exact",
            service("environment: [A=1, 'B=$$x']"),
            "env: {\"A\": \"1\", \"B\": \"$x\"}",
        ),
        row("`working_dir`", "exact", service("working_dir: /srv"), "cwd: \"/srv\""),
        row("`user`", "exact", service("user: '1000:data'"), "user: \"1000:data\""),
        row(
            "`sysctls` below `net`",
            "exact",
            service("sysctls: {net.core.somaxconn: 1024}"),
            "sysctl: {\"net.core.somaxconn\": \"1024\"}",
        ),
        row(
            "other `sysctls`",
            "not carried",
            service("sysctls: {kernel.shmmax: 1}"),
            "kernel.shmmax of a",
        ),
        row(
            "`restart`, `deploy.restart_policy.condition`",
            "exact",
            "services:\n  a: {image: x, restart: unless-stopped}\n  \
             b: {image: y, deploy: {restart_policy: {condition: on-failure}}}\n",
            "restart: always … restart: on-failure",
        ),
        row(
            "a number of restarts, other keys of `deploy.restart_policy`",
            "not carried",
            "services:\n  a: {image: x, restart: 'on-failure:3'}\n  \
             b: {image: y, deploy: {restart_policy: {max_attempts: 3}}}\n",
            "restart (on-failure:3) of a … deploy.restart_policy.max_attempts of b",
        ),
    ]
}

fn files() -> Vec<Case> {
    vec![
        row(
            "`volumes`",
            "exact",
            service("volumes: ['./c:/etc/c:ro', 'data:/d']"),
            "volumes: [\"./c:/etc/c:ro\", \"data:/d\"]",
        ),
        row(
            "`z`, `cached` of a volume; a volume without a name",
            "description",
            service("volumes: ['data:/d:z', '/anonymous']"),
            "Options of volumes: z of a … /anonymous of a",
        ),
        row(
            "other options of a volume",
            "not carried",
            service("volumes: ['data:/d:rslave']"),
            "Options of volumes: rslave of a",
        ),
        row(
            "`driver_opts`, `external` of the file's `volumes`",
            "not carried",
            with(
                "volumes: ['data:/d', 'e:/e']",
                "volumes: {data: {driver_opts: {}}, e: {external: true}}",
            ),
            "driver_opts of data, external of e",
        ),
        row("`tmpfs`", "approximated", service("tmpfs: /run"), "volumes: [\"tmpfs-a-1:/run\"]"),
        row(
            "`secrets`, `configs` from files",
            "exact",
            with(
                "secrets: [s], configs: [{source: c, target: /etc/c}]",
                "secrets: {s: {file: ./s}}\nconfigs: {c: {file: ./c}}",
            ),
            "volumes: [\"./s:/run/secrets/s:ro\", \"./c:/etc/c:ro\"]",
        ),
        row(
            "other `secrets`, `configs`",
            "not carried",
            with("secrets: [s]", "secrets: {s: {environment: S}}"),
            "not in a file: s of a",
        ),
    ]
}

fn limits() -> Vec<Case> {
    vec![
        row(
            "`cpus`, `deploy.resources.limits.cpus`",
            "exact",
            service("cpus: 0.5"),
            "cpu: {limit: 0.500}",
        ),
        row(
            "`mem_limit`, `deploy.resources.limits.memory`",
            "exact",
            service("deploy: {resources: {limits: {memory: 512m}}}"),
            // 512 · 1024².
            "memory: {limit: 536870.912KB}",
        ),
        row(
            "`pids_limit`, `deploy.resources.limits.pids`",
            "exact",
            service("pids_limit: 100"),
            "pids: 100",
        ),
        row(
            "`ulimits.nofile`",
            "exact",
            service("ulimits: {nofile: {soft: 1024, hard: 4096}}"),
            "open-files: 1024",
        ),
        row(
            "other `ulimits`",
            "not carried",
            service("ulimits: {nproc: 100}"),
            "ulimits.nproc of a",
        ),
        row(
            "`deploy.resources.reservations`",
            "not carried",
            service("deploy: {resources: {reservations: {cpus: '1'}}}"),
            "deploy.resources.reservations of a",
        ),
    ]
}

fn order() -> Vec<Case> {
    vec![
        row(
            "`depends_on`",
            "exact",
            two("working_dir: /", "condition: service_started"),
            "b: {image: \"oci://y\", after: [\"a\"]}",
        ),
        row(
            "`depends_on.condition: service_completed_successfully`",
            "exact",
            two("working_dir: /", "condition: service_completed_successfully"),
            "ready: exit … after: [\"a\"]",
        ),
        row(
            "`depends_on.restart`",
            "not carried",
            two("working_dir: /", "restart: true"),
            "depends_on.a.restart",
        ),
        row(
            "`healthcheck`, where another waits for `service_healthy`",
            "approximated",
            two(
                "healthcheck: {test: curl x, interval: 1m30s, timeout: 5s, retries: 4, start_period: 2s, start_interval: 500ms}",
                "condition: service_healthy",
            ),
            "ready: {healthcheck: [\"/bin/sh\", \"-c\", \"curl x\"], every: 90s, check-timeout: 5s, fall: 4, \
             start-period: 2s, start-every: 500ms}",
        ),
        row(
            "`healthcheck` that nothing waits for",
            "description",
            service("healthcheck: {test: curl x}"),
            "Health checks of services that no other waits for (`service_healthy`): a",
        ),
        row(
            "`deploy.replicas`, `scale`",
            "exact",
            service("scale: 3"),
            "a: {count: 3, image: \"oci://x\"",
        ),
        row("`deploy.mode`", "exact", service("deploy: {mode: global}"), "a: {image: \"oci://x\"}"),
        row(
            "`profiles`",
            "description",
            format!("{}  tool: {{image: y, profiles: [debug]}}\n", service("working_dir: /")),
            "tool (debug)",
        ),
    ]
}

fn names() -> Vec<Case> {
    vec![
        row(
            "`container_name`, `aliases`, `links`",
            "exact",
            "services:\n  a: {image: x, container_name: box, networks: {default: {aliases: [www]}}}\n  \
             b: {image: y, links: [\"a:peer\"]}\n",
            "a: {image: \"oci://x\", aliases: [\"box\", \"peer\", \"www\"]}",
        ),
        row("`hostname`", "approximated", service("hostname: h"), "aliases: [\"h\"]"),
        row(
            "a name that another service has",
            "not carried",
            "services:\n  a: {image: x, container_name: b}\n  b: {image: y}\n",
            "b of a",
        ),
        row("`name`", "exact", format!("name: shop\n{}", service("working_dir: /")), "name: shop"),
    ]
}

fn networks() -> Vec<Case> {
    vec![
        row(
            "`networks`",
            "approximated",
            with("networks: [back, front]", "networks: {back: , front: }"),
            "lans: [back, front] … {between: [a, back]} … {between: [a, front]}",
        ),
        row(
            "`network_mode: none`",
            "exact",
            format!("{}  b: {{image: y}}\n  c: {{image: z}}\n", service("network_mode: none")),
            "links:\n  - {between: [b, lan]}\n  - {between: [c, lan]}",
        ),
        row(
            "other `network_mode`",
            "not carried",
            service("network_mode: host"),
            "network_mode (host) of a",
        ),
        row(
            "`subnet`, `ipv4_address`, `ipv6_address`",
            "exact",
            with(
                "networks: {n: {ipv4_address: 10.5.0.7}}",
                "networks: {n: {ipam: {config: [{subnet: 10.5.0.0/16}]}}}",
            ),
            "address: [\"10.5.0.7\"] … 10.5.0.0/16",
        ),
        row(
            "other keys of networks",
            "not carried",
            with(
                "networks: {n: {priority: 7}}",
                "networks: {n: {internal: true, ipam: {config: [{subnet: 10.5.0.0/16, gateway: 10.5.0.1}]}}}",
            ),
            "internal of n … ipam.config.gateway of n … priority of a in n",
        ),
        row(
            "`driver: bridge`, `labels`, `name` of networks",
            "description",
            with("networks: [n]", "networks: {n: {driver: bridge, name: x, labels: {a: b}}}"),
            "Keys of networks: name of n, labels of n",
        ),
        row(
            "`ports`",
            "exact",
            service("ports: ['8080:80', '127.0.0.1:90-91:90-91/tcp']"),
            "publish: [\"90:90\", \"91:91\", \"8080:80\"]",
        ),
        row(
            "`ports` of UDP, of replicas, without a port of the machine, or more than 100",
            "not carried",
            format!(
                "{}  b: {{image: y, scale: 2, ports: ['81:80']}}\n",
                service("ports: ['53:53/udp', '9000', '1000-1200:1000-1200']")
            ),
            "53:53/udp of a, 9000 of a, 1000-1200:1000-1200 of a … 81:80 of b",
        ),
    ]
}

fn others() -> Vec<Case> {
    vec![
        row(
            "`cap_add` of what root of a node has",
            "description",
            service("cap_add: [NET_ADMIN, CAP_NET_RAW]"),
            "Capabilities that root of a node has: NET_ADMIN of a, CAP_NET_RAW of a",
        ),
        row("other `cap_add`", "not carried", service("cap_add: [SYS_TIME]"), "SYS_TIME of a"),
        row(
            "`security_opt: …:unconfined`",
            "description",
            service("security_opt: ['seccomp:unconfined']"),
            "security_opt seccomp:unconfined of a",
        ),
        row(
            "other `security_opt`",
            "not carried",
            service("security_opt: ['no-new-privileges:true']"),
            "security_opt no-new-privileges:true of a",
        ),
        row(
            "`annotations`, `attach`, `develop`, `expose`, `init`, `labels`, `logging`, `pull_policy`, `stdin_open`, `tty`",
            "description",
            service(
                "annotations: {}, attach: false, develop: {}, expose: ['80'], init: true, labels: [a], logging: {}, \
                 pull_policy: always, stdin_open: true, tty: true",
            ),
            "annotations of a, attach of a, develop of a, expose of a, init of a, labels of a, logging of a, \
             pull_policy of a, stdin_open of a, tty of a",
        ),
        row(
            "`deploy.labels`, `placement`, `rollback_config`, `update_config`",
            "description",
            service("deploy: {labels: {}, placement: {}, rollback_config: {}, update_config: {}}"),
            "deploy.labels of a, deploy.placement of a, deploy.rollback_config of a, deploy.update_config of a",
        ),
        row(
            "`version`, `x-…`",
            "description",
            format!("version: '3'\nx-a: 1\n{}", service("working_dir: /")),
            "Keys of the file: version, x-a",
        ),
        row(
            "`read_only`, `privileged`, `dns`, `extra_hosts`, `devices`, `cap_drop`, `shm_size`, `stop_signal`",
            "not carried",
            service(
                "read_only: true, privileged: true, dns: 1.1.1.1, extra_hosts: ['x:1.1.1.1'], devices: [/dev/fuse], \
                 cap_drop: [ALL], shm_size: 1g, stop_signal: SIGINT",
            ),
            "read_only of a, privileged of a, dns of a, extra_hosts of a, devices of a, cap_drop of a, shm_size of a, \
             stop_signal of a",
        ),
    ]
}

/// What is in several files.
fn several() -> Vec<Case> {
    let beside = |case: Case, beside| Case { beside, ..case };
    vec![
        beside(
            row("`env_file`", "exact", service("env_file: [a.env]"), "env: {\"A\": \"b c\"}"),
            &[("a.env", "A='b c'\n")],
        ),
        beside(
            row(
                "`extends`, `include`",
                "exact",
                "include: [db.yaml]\nservices:\n  a: {extends: {file: base.yaml, service: base}}\n",
                "a: {image: \"oci://web\" … db: {image: \"oci://db\"",
            ),
            &[
                ("base.yaml", "services: {base: {image: web}}\n"),
                ("db.yaml", "services: {db: {image: db}}\n"),
            ],
        ),
        beside(
            row(
                "`${NAME}`, `${NAME:-default}`, `.env`",
                "exact",
                "services: {a: {image: \"x:${TAG}-${OTHER:-y}\"}}\n",
                "image: \"oci://x:7-y\"",
            ),
            &[(".env", "TAG=7\n")],
        ),
    ]
}
