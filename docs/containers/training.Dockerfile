# Trains and evaluates with albert-keras on CPUs. Build it in the folder of the repository:
#   docker build -f docs/containers/training.Dockerfile -t albert-training .
FROM python:3.11.11-slim-bookworm AS build
WORKDIR /source
# The packages change less often than the code, so they come first.
COPY requirements.txt ./
RUN python -m venv /opt/albert-keras \
    && /opt/albert-keras/bin/pip install --no-cache-dir --require-hashes -r requirements.txt
COPY pyproject.toml README.md LICENSE ./
COPY albert_keras albert_keras
COPY data_pipeline data_pipeline
COPY saved_models saved_models
RUN /opt/albert-keras/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.11.11-slim-bookworm
COPY --from=build /opt/albert-keras /opt/albert-keras
RUN useradd --create-home --uid 10001 albert
ENV PATH="/opt/albert-keras/bin:$PATH"
USER 10001:10001
WORKDIR /work
# A training ends by itself; whether it makes progress is in the log of the run.
HEALTHCHECK NONE
ENTRYPOINT ["albert-keras"]
CMD ["--help"]
