#!/bin/sh
# Starts the model server with ports that only this computer can reach. Never open them to others:
# anyone who reaches the gRPC port can change the configuration, and deeply nested JSON ends the
# process.
cd "$(dirname "$0")" || exit 1
exec docker run --rm --name tensorflow-serving-%{model} --user "$(id -u):$(id -g)" \
  --publish 127.0.0.1:%{grpc_port}:8500 --publish 127.0.0.1:%{rest_port}:8501 \
  --memory %{memory_gib}g --cpus %{cores} \
  --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges \
  --env TF_ENABLE_ONEDNN_OPTS=1 \
  --mount type=bind,source=%{quoted_base_path},target=%{quoted_base_path},readonly \
  --mount "type=bind,source=$PWD,target=/kit,readonly" \
  tensorflow/serving:2.15.1 \
  --model_config_file=/kit/models.config \
  --enable_batching=true --batching_parameters_file=/kit/batching.config \
  --monitoring_config_file=/kit/monitoring.config \
  --enable_profiler=false \
  --rest_api_timeout_in_ms=30000 \
  --rest_api_num_threads=%{threads} --grpc_max_threads=%{threads} \
  --tensorflow_intra_op_parallelism=%{cores} --tensorflow_inter_op_parallelism=%{cores}%{more_flags}
