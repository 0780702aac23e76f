"""The server below the application: processes, the HTTP protocol, statistics and metrics.

    process_supervisor     start workers and companions, replace those that die, stop in order
    worker_process         one worker: build the application and run its periodic tasks
    http_protocol          limits on bytes, seconds and connections of a client
    connection_registry    open connections by address
    companion_processes    programs that run beside the workers
    parent_watchdog        end a process when its parent dies
    restart_backoff        delays between restarts
    request_statistics     counts and log lines of a worker
    metrics_endpoint       the counts of all workers for Prometheus

Out of scope: paths, keys and accounts (middleware/, routes). This module imports nothing, because parent_watchdog must start
fast.
"""
