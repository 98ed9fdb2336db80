# Serves one exported model with tensorflow_model_server. Build it with the folder of its versions:
#   docker build -f docs/containers/serving.Dockerfile -t books saved_models/books
FROM tensorflow/serving:2.15.1
COPY --chown=root:root . /models/model
ENV MODEL_NAME=model MODEL_BASE_PATH=/models TF_ENABLE_ONEDNN_OPTS=1
USER 10001:10001
EXPOSE 8500 8501
# The image has no curl; bash opens connections itself.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["bash", "-c", \
    "exec 3<>/dev/tcp/127.0.0.1/8501 && printf 'GET /v1/models/model HTTP/1.0\\r\\n\\r\\n' >&3 && grep -q '\"AVAILABLE\"' <&3"]
