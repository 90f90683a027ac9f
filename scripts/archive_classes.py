"""Leave an archive of the classes that a stream loads: a driver's JVM then starts with little more than half the work.

Called by set-up with the archive's path; what it runs is a real, tiny stream, so that the right classes are loaded.
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from include.settings import load_spec
from spark_jobs.jobs.stream_live_metrics import LiveMetricsSettings, run
from spark_jobs.session import JAVA_OPTIONS, open_session


def main(archive: Path) -> None:
    spec = load_spec("live_metrics")
    options = {"spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} -XX:ArchiveClassesAtExit={archive}"}
    spec = spec.model_copy(update={"resources": spec.resources.model_copy(update={"conf": options})})
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        landing = home / "landing" / "clicks"
        landing.mkdir(parents=True)
        (landing / "clicks.csv").write_text("1,1,1,pv,1700000000\nbroken\n", encoding="utf-8")
        spark = open_session(spec, home)
        jvm = spark.sparkContext._gateway.proc
        run(spark, LiveMetricsSettings(home=home, spec=spec, drain=True))
        spark.stop()
        jvm.stdin.close()  # tells the JVM to end; it writes the archive then
        jvm.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
